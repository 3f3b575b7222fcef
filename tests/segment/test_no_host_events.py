"""Recordings without any host event, marker or launch: steps come from what ends them, or from what comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from synthetic import TraceSpec, generate, models, variety, write
from synthetic.spec import ModelSpec
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")

MODELS: dict[str, TraceSpec] = {
    "dense": models.llama_decode(layers=32, steps=9),
    "sliding and full": models.gptoss_20b_decode("cuda", steps=5),
    "query and key norms": variety.qwen3_dense(layers=12, steps=5),
    "dense, then experts": variety.dense_first_moe(steps=4, moe=9),
    "state space and attention": variety.hybrid_mamba(layers=12, steps=4),
}


def without(model: ModelSpec, *roles: str) -> ModelSpec:
    return replace(
        model,
        prologue=tuple(kernel for kernel in model.prologue if kernel.role not in roles),
        epilogue=tuple(kernel for kernel in model.epilogue if kernel.role not in roles),
    )


LEFT_OUT = {
    "nothing": (),
    "sampler": ("sampler",),
    "sampler and copies": ("sampler", "copy"),
    "sampler, copies and lookup": ("sampler", "copy", "embedding", "other"),
    "all but the final norm": ("sampler", "copy", "embedding", "other", "lm_head"),
}


def steps_of(spec: TraceSpec, folder: Path) -> pl.DataFrame:
    """Segment a trace of which only the device's events are left, with no tie to any launch."""
    path = write(generate(replace(spec, engine="none"), 1), folder / "trace.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    events = [event for event in document["traceEvents"] if event.get("cat") in DEVICE or event.get("ph") == "M"]
    for event in events:
        for key in ("correlation", "External id"):
            event.get("args", {}).pop(key, None)
    path.write_text(json.dumps({**document, "traceEvents": events}), encoding="utf-8")
    return segment(open_traces(path, cache=False).traces[0]).steps


@pytest.mark.parametrize("left_out", LEFT_OUT)
@pytest.mark.parametrize("name", MODELS)
def test_steps_are_found_with_all_their_blocks(name: str, left_out: str, tmp_path: Path) -> None:
    spec = MODELS[name]
    steps = steps_of(replace(spec, model=without(spec.model, *LEFT_OUT[left_out])), tmp_path)
    assert steps["blocks"].to_list() == [len(spec.model.layers)] * len(spec.steps)
    assert steps["complete"].all()


@pytest.mark.parametrize("name", MODELS)
def test_unlike_layers_that_repeat_are_not_steps(name: str, tmp_path: Path) -> None:
    spec = MODELS[name]
    lone = replace(spec, model=without(spec.model, "sampler", "copy", "embedding", "other"), steps=spec.steps[:1])
    assert steps_of(lone, tmp_path).height == 1


@pytest.mark.parametrize("count", [1, 4])
def test_drafts_without_inputs_belong_to_the_pass_before_them(count: int, tmp_path: Path) -> None:
    spec = variety.speculative(8, 3, steps=count)
    bare = replace(spec, model=without(spec.model, "sampler", "copy", "embedding", "other"))
    assert steps_of(bare, tmp_path).height == count
