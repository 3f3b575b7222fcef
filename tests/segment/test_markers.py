"""Step markers of every engine and version."""

from __future__ import annotations

import pytest

from traceanalyzer.segment.markers import Marker, python_rank, read_marker


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("execute_context_0(0)_generation_1(1)", Marker("vllm", "decode", 1, 1)),
        ("execute_context_2(4096)_generation_0(0)", Marker("vllm", "prefill", 2, 4096)),
        ("execute_context_1(tokens_512)_generation_3(tokens_3)", Marker("vllm", "mixed", 4, 515)),
        ("execute_context_0(0)_generation_0(0)", Marker("vllm", "dummy", 0, 0)),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
            Marker("vllm", "decode", 32, 32, 55086),
        ),
        ("execute_new_2_cached_0", Marker("vllm", "prefill", 2)),
        ("execute_new_0_cached_7", Marker("vllm", "decode", 7)),
        ("execute_new_1_cached_7", Marker("vllm", "mixed", 8)),
        ("_dummy_run", Marker("vllm", "dummy")),
        ("step[DECODE bs=32]", Marker("sglang", "decode", 32, 32)),
        ("step[EXTEND bs=15 toks=15360]", Marker("sglang", "prefill", 15, 15360)),
        ("step[MIXED bs=4 toks=900]", Marker("sglang", "mixed", 4, 900)),
        ("step[IDLE bs=0]", Marker("sglang", "dummy", 0)),
        ("step[SOMETHING_NEW bs=3]", Marker("sglang", "unknown", 3)),
        ("ProfilerStep#12", Marker("profiler_step")),
        ("gpu_model_runner: preprocess", None),
        ("execute_modelling", None),
        ("", None),
    ],
)
def test_a_marker_tells_phase_and_counts(name: str, expected: Marker | None) -> None:
    assert read_marker(name) == expected


@pytest.mark.parametrize("digits", [13, 19, 5000])
def test_counts_that_no_step_can_have_are_none(digits: int) -> None:
    count = "9" * digits
    assert read_marker(f"execute_context_0(0)_generation_{count}({count})") is None
    assert read_marker(f"execute_new_0_cached_{count}") is None
    assert read_marker(f"step[DECODE bs={count}]") == Marker("sglang", "decode")
    assert read_marker(f"ProfilerStep#{count}") == Marker("profiler_step")


def test_the_frame_closest_to_the_model_is_preferred() -> None:
    names = [
        "vllm/v1/worker/gpu_model_runner.py(3939): execute_model",
        "vllm/v1/worker/gpu_worker.py(1327): execute_model",
        "vllm/v1/worker/gpu_worker.py(1327): init_device",
    ]
    assert [python_rank(name) for name in names] == [0, 1, None]
