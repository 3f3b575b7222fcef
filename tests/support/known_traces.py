"""Traces whose steps and blocks are known: generated in the shape of recordings, and recordings of others."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthetic import DeviceEventTruth, SyntheticTrace, TraceSpec, generate, write
from synthetic.models import gptoss_20b_decode, llama_decode
from synthetic.variety import dense_first_moe, qwen3_dense
from tests.support.places import SHARED

RECORDED = ("gptoss20b_vllm_decode_mi300x", "qwen3_8b_sglang_decode_mi300x", "qwen1.5_0.5b_hf_h100")

LIKE_RECORDED: dict[str, TraceSpec] = {
    "gpt-oss as a HIP graph, without its neighbours": gptoss_20b_decode("rocm", batch=32, steps=1),
    "gpt-oss with the tail of a step and a cut one": replace(
        gptoss_20b_decode("rocm", batch=4, steps=4), leading_kernels=130, cut_last_step=150
    ),
    "SGLang on ROCm, norms of queries and keys in the block": qwen3_dense(steps=3),
    "eager on CUDA, modules recorded": replace(
        llama_decode(layers=24, batch=16, steps=2), launch="eager", with_stack=True, module_events=True
    ),
    "graph pieces around attention": replace(llama_decode(layers=12, batch=8, steps=3), launch="piecewise"),
    "dense blocks, then experts with a shared one on a side stream": dense_first_moe(),
}
"""What recordings look like, with the truth by construction."""


def known_trace(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the path of a known trace, and what is true of it, as a recording's expected values are written.

    Args:
        name: a key of LIKE_RECORDED, or one of RECORDED where the recordings of others are.
        folder: where a generated trace is written.
    """
    if name in RECORDED:
        truth = json.loads((SHARED / "expected" / f"{name}.json").read_text(encoding="utf-8"))
        return SHARED / truth["path"], truth
    made = generate(LIKE_RECORDED[name], seed=3)
    return write(made, folder / "trace.json"), expected_of(made)


def known_names() -> list[str]:
    """Return the names of all known traces that are here."""
    return [*LIKE_RECORDED, *(RECORDED if (SHARED / "expected").is_dir() else ())]


def expected_of(made: SyntheticTrace) -> dict[str, Any]:
    """Return what is true of a generated trace, as a recording's expected values are written: times in µs."""
    truth, counts = made.truth, Counter(event.name for event in made.truth.events if event.category == "kernel")
    early = [event for event in truth.events if event.step is None]
    steps = [_step(made, number) for number in range(len(truth.steps))]
    if early:
        steps.insert(0, _orphan(early))
    return {
        "n_gpu_events": len(truth.events),
        "kernel_totals": {n: {"count": counts[n], "total_us": ns / 1000} for n, ns in truth.kernel_ns.items()},
        "steps": steps,
    }


def _step(made: SyntheticTrace, number: int) -> dict[str, Any]:
    step = made.truth.steps[number]
    own = {event.event: event for event in made.truth.events if event.step == number}
    order = sorted(own.values(), key=lambda event: (event.start_ns, event.event))
    place = {event.event: at for at, event in enumerate(order)}
    blocks = [
        {
            "start": min(place[event] for event in block.events),
            "n_events": len(block.events),
            "n_kernels": block.kernels,
            "sum_us": sum(own[event].dur_ns for event in block.events) / 1000,
            "variant": block.variant,
        }
        for block in step.blocks
    ]
    return {
        "phase": step.phase if step.complete else f"{step.phase} cut",
        "complete": step.complete,
        "n_gpu_events": len(own),
        "n_kernels": step.kernels,
        "kernel_sum_us": step.kernel_sum_ns / 1000,
        "n_blocks": len(blocks),
        "blocks": blocks,
        "prologue_events": len(step.prologue.events),
        "epilogue_events": len(step.epilogue.events),
    }


def _orphan(events: list[DeviceEventTruth]) -> dict[str, Any]:
    kernels = [event for event in events if event.category == "kernel"]
    return {
        "phase": "orphan",
        "complete": False,
        "n_gpu_events": len(events),
        "n_kernels": len(kernels),
        "kernel_sum_us": sum(kernel.dur_ns for kernel in kernels) / 1000,
        "n_blocks": 0,
    }
