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
        # vLLM with the sum of squared query lengths behind the tokens, as forks write it
        ("execute_context_1(888_788544)_generation_0(0)", Marker("vllm", "prefill", 1, 888)),
        ("execute_context_1(512_262144)_generation_3(3_3)", Marker("vllm", "mixed", 4, 515)),
        ("execute_context_0(0)_generation_32(128)", Marker("vllm", "decode", 32, 128)),
        # SGLang: sums of the detailed annotations
        ("step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]", Marker("sglang", "decode", 64, 64, 131072)),
        (
            "step[DECODE bs=64 g_sq=256 g_sqsq=1024 g_sqsk=524288 g_sk=131072]",
            Marker("sglang", "decode", 64, 256, 131072),
        ),
        ("step[DECODE bs=64 g_sqsq=1024 g_sqsk=524288 g_sk=131072]", Marker("sglang", "decode", 64, 256, 131072)),
        (
            "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]",
            Marker("sglang", "prefill", 2, 14721, 16221),
        ),
        (
            "step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=20971520 c_sqsk=23019520 g_sq=3 g_sk=6144 g_sqsq=3"
            " g_sqsk=6144]",
            Marker("sglang", "mixed", 5, 6147, 13288),
        ),
        (
            "step[MIXED bs=1 c=1 g=0 c_sq=3 c_sk=3 c_sqsq=9 c_sqsk=9 g_sq=0 g_sk=0 g_sqsq=0 g_sqsk=0]",
            Marker("sglang", "prefill", 1, 3, 3),
        ),
        (
            "step[TARGET_VERIFY bs=8 g_sq=32 g_sqsq=128 g_sqsk=4096 g_sk=1024]",
            Marker("sglang", "decode", 8, 32, 1024, verifies=True),
        ),
        ("step[TARGET_VERIFY bs=8]", Marker("sglang", "decode", 8, verifies=True)),
        (
            "step[DRAFT_EXTEND_V2 bs=8 c_sq=32 c_sqsq=128 c_sqsk=4096 c_sk=1056]",
            Marker("sglang", "unknown", 8, 32, 1056, drafts=True),
        ),
        # SGLang: lower case
        ("step[decode bs=4]", Marker("sglang", "decode", 4, 4)),
        ("step[prefill bs=2 toks=300]", Marker("sglang", "prefill", 2, 300)),
        ("step[mixed bs=3 ext=200 dec=2]", Marker("sglang", "mixed", 3, 202)),
        ("step[idle]", Marker("sglang", "dummy")),
        # ATOM
        ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", Marker("atom", "prefill", 2, 14721)),
        ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]", Marker("atom", "prefill", 6, 17408)),
        (
            "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832 sqsk=59768832 sk=17408 tbo=1]",
            Marker("atom", "prefill", 6, 17408, 17408),
        ),
        ("decode[bs=64 tok=64 d=64]", Marker("atom", "decode", 64, 64)),
        ("decode[bs=117/128 tok=117 d=117]", Marker("atom", "decode", 117, 117)),
        ("eager_decode[bs=32 tok=32 d=32]", Marker("atom", "decode", 32, 32)),
        (
            "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]",
            Marker("atom", "decode", 32, 128, 65536, verifies=True),
        ),
        (
            "decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]",
            Marker("atom", "mixed", 128, 384, 258048),
        ),
        ("decode[bs=4 tok=16 p=0 d=4 spec=3]", Marker("atom", "decode", 4, 16, verifies=True)),
        ("ProfilerStep#12", Marker("profiler_step")),
        ("decode[layer 3]", None),
        ("prefill[0]", None),
        ("step[3]", None),
        ("execute_context_menu", None),
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
    assert read_marker(f"execute_context_0(0)_generation_{count}({count})") == Marker("vllm")
    assert read_marker(f"execute_new_0_cached_{count}") == Marker("vllm")
    assert read_marker(f"decode[bs={count} tok={count} sk={count}]") == Marker("atom", "decode")
    assert read_marker(f"step[DECODE bs={count}]") == Marker("sglang", "decode")
    assert read_marker(f"ProfilerStep#{count}") == Marker("profiler_step")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("execute_context_2(1024)_generation_", "vllm"),
        ("execute_context_2", "vllm"),
        ("execute_32_context_0(sq0sk0)_generation_32(sq32sk55086)", "vllm"),
        ("execute_new_2", "vllm"),
        ("step[]", "sglang"),
        ("step[", "sglang"),
        ("step[??? bs=3]", "sglang"),
        ("step[\0]", "sglang"),
        ("step[DECODE_OR_NOT bs=x g_sq==1 =5 [", "sglang"),
    ],
)
def test_an_unreadable_marker_is_a_step_of_unknown_phase(name: str, source: str) -> None:
    assert read_marker(name) == Marker(source)


def test_the_last_number_of_a_cut_marker_is_not_believed() -> None:
    assert read_marker("step[DECODE bs=64 g_sq=256 g_sk=131") == Marker("sglang", "decode", 64, 256)
    assert read_marker("prefill[bs=2 tok=14721 ctx=[7803, 69") == Marker("atom", "prefill", 2, 14721)
    assert read_marker("decode[bs=6") == Marker("atom", "decode")


@pytest.mark.parametrize("body", ["=" * 50_000, "a" * 50_000, "[" * 50_000, "bs=" * 50_000, "x=[1," * 20_000])
def test_a_long_marker_is_read_as_far_as_it_makes_sense(body: str) -> None:
    assert read_marker(f"step[DECODE bs=2 {body}]") == Marker("sglang", "decode", 2, 2)
    assert read_marker(f"decode[bs=2 {body}]") == Marker("atom", "decode", 2, 2)


def test_the_frame_closest_to_the_model_is_preferred() -> None:
    names = [
        "vllm/v1/worker/gpu_model_runner.py(3939): execute_model",
        "vllm/v1/worker/gpu_worker.py(1327): execute_model",
        "vllm/v1/worker/gpu_worker.py(1327): init_device",
    ]
    assert [python_rank(name) for name in names] == [0, 1, None]
