"""Steps of recordings whose markers users found unread: SGLang's sums, ATOM's labels, a fork of vLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.places import DATA
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_trace

Step = tuple[str, int, int, int | None]

RECORDINGS: dict[str, list[Step]] = {
    "001_sglang_mtp_marker": [("decode", 64, 256, 131072)] * 4,
    "004_atom_markers": [
        ("prefill", 2, 14721, None),
        ("decode", 64, 64, None),
        ("decode", 117, 117, None),
        ("decode", 32, 128, 65536),
    ],
    "atom_decode": [("decode", 32, 128, 65536)] * 3,
    "sglang_roofline_decode_mtp": [("decode", 64, 128, 131072)] * 3,
    "vllm_fork_b200": [("prefill", 1, 888, None)] * 3,
}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_markers_tell_phase_requests_tokens_and_context(recording: str) -> None:
    steps = segment(open_trace(DATA / "markers" / f"{recording}.json.gz")).steps
    assert steps.select("phase", "requests", "tokens", "kv_tokens").rows() == RECORDINGS[recording]


def marked(path: Path, labels: list[str]) -> list[tuple[str, int | None]]:
    """Write a recording with a kernel for each marker; return phase and kernels of its steps."""
    events: list[dict[str, object]] = []
    for number, label in enumerate(labels):
        at, args = 100 * number, {"correlation": number + 1}
        host = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {"cat": "user_annotation", "name": label, "ts": at, "dur": 50, **host},
            {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 1, "dur": 2, "args": args, **host},
            {
                "cat": "kernel",
                "name": "rms_norm_kernel",
                "ph": "X",
                "pid": 0,
                "tid": 7,
                "ts": at + 10,
                "dur": 5,
                "args": {"device": 0, "stream": 7, **args},
            },
        ]
    path.write_text(json.dumps({"traceEvents": events}))
    return segment(open_trace(path)).steps.select("phase", "kernels").rows()


def test_passes_of_a_draft_model_belong_to_the_step_whose_tokens_they_follow(tmp_path: Path) -> None:
    passes = ["step[TARGET_VERIFY bs=8]", "step[DRAFT_EXTEND_V2 bs=8]", "step[DECODE bs=8]", "step[DECODE bs=8]"]
    assert marked(tmp_path / "drafted.json", passes * 2) == [("decode", 4), ("decode", 4)]


def test_decode_markers_without_verification_are_steps(tmp_path: Path) -> None:
    assert marked(tmp_path / "plain.json", ["step[DECODE bs=8]"] * 2) == [("decode", 1), ("decode", 1)]


def test_unreadable_markers_are_steps_of_unknown_phase(tmp_path: Path) -> None:
    labels = ["step[DECODE bs=8]", "step[?]", "execute_context_2", "step[IDLE]"]
    assert [phase for phase, _ in marked(tmp_path / "odd.json", labels)] == ["decode", "unknown", "unknown", "dummy"]
