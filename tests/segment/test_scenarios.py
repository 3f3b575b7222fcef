"""What servers and profilers do to a trace, on generated traces whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from synthetic import DroppedKernel, Hole, StepSpec, TraceSpec, generate, models, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.trace import open_traces

LLAMA = models.llama_decode(layers=8, steps=3)
GPT_OSS = models.gptoss_20b_decode()
DRAFT = replace(LLAMA.model, draft=replace(LLAMA.model, layers=LLAMA.model.layers[:1], name="draft"), draft_passes=3)

SCENARIOS: dict[str, TraceSpec] = {
    "one graph a step": LLAMA,
    "sliding and full attention by name": GPT_OSS,
    "two batches at once": replace(LLAMA, microbatches=2),
    "two batches at once, eager": replace(GPT_OSS, microbatches=2, launch="eager"),
    "verify and draft passes": replace(LLAMA, model=DRAFT),
    "verify and draft passes, eager": replace(LLAMA, model=DRAFT, launch="eager"),
    "modules": replace(LLAMA, launch="eager", with_stack=True, module_events=True),
    "no markers, one graph a step": replace(LLAMA, engine="none"),
    "no markers, piecewise graphs": replace(LLAMA, engine="none", launch="piecewise"),
    "no markers, eager, the GPU far behind": replace(LLAMA, engine="none", launch="eager", gpu_lag_us=50_000.0),
    "python frames, some idle": replace(LLAMA, engine="vllm_python", with_stack=True, idle_calls=3),
    "a dummy step between": replace(LLAMA, steps=(LLAMA.steps[0], StepSpec(), LLAMA.steps[1])),
    "a dummy step that launches nothing": replace(LLAMA, steps=(LLAMA.steps[0], StepSpec(runs=False), LLAMA.steps[1])),
    "the GPU far behind its markers": replace(LLAMA, gpu_lag_us=50_000.0),
    "a prefill first": replace(LLAMA, steps=(models.prefill(LLAMA.model, 2, 512), *LLAMA.steps)),
    "the end of an earlier step": replace(LLAMA, leading_kernels=50),
    "a last step cut off": replace(LLAMA, cut_last_step=40),
    "a last step cut off, no markers": replace(LLAMA, cut_last_step=40, engine="none"),
    "streams that hop": replace(LLAMA, hop_streams=4),
    "a hole inside a graph": replace(LLAMA, holes=(Hole(1, 3, 4),)),
    "a lost attention kernel": replace(LLAMA, dropped=(DroppedKernel(1, 3, 4),)),
}


def cut(spec: TraceSpec, folder: Path) -> tuple[list[str], Segmentation]:
    """Generate, segment, compare."""
    truth = generate(spec, 1)
    found = segment(open_traces(write(truth, folder / "trace.json"), cache=False).traces[0])
    return faults(truth, found), found


@pytest.mark.parametrize("name", SCENARIOS)
def test_steps_and_blocks_are_those_of_the_generator(name: str, tmp_path: Path) -> None:
    wrong, _ = cut(SCENARIOS[name], tmp_path)
    assert wrong == []


def test_every_device_event_is_placed_exactly_once(tmp_path: Path) -> None:
    _, found = cut(SCENARIOS["verify and draft passes"], tmp_path)
    assert found.events["index"].is_unique().all()
    assert found.events["step"].null_count() == 0
    assert found.steps["events"].sum() == len(found.events)
    assert found.blocks["events"].sum() == found.events["block"].is_not_null().sum()


def test_a_dummy_step_is_none_of_the_decode_steps(tmp_path: Path) -> None:
    _, found = cut(SCENARIOS["a dummy step between"], tmp_path)
    assert found.steps["phase"].to_list() == ["decode", "dummy", "decode"]


def test_sources_name_what_the_steps_rest_on(tmp_path: Path) -> None:
    sources = {
        name: cut(SCENARIOS[name], tmp_path)[1].steps["source"].unique().to_list()
        for name in ("no markers, one graph a step", "no markers, piecewise graphs", "python frames, some idle")
    }
    assert list(sources.values()) == [["graph_launch"], ["inferred"], ["python"]]


def test_the_kinds_of_a_pattern_and_its_period(tmp_path: Path) -> None:
    _, found = cut(GPT_OSS, tmp_path)
    first = found.blocks.filter(pl.col("step") == 0)
    assert first["kind"].to_list() == ["sliding", "full"] * 12
    assert found.steps["period_blocks"].unique().to_list() == [2]


def test_roles_are_those_of_the_generator(tmp_path: Path) -> None:
    for spec in (LLAMA, GPT_OSS):
        truth = generate(spec, 1)
        found = segment(open_traces(write(truth, tmp_path / "trace.json"), cache=False).traces[0])
        roles = dict(found.events.select("index", "role").iter_rows())
        wrong = {
            (event.role, roles[event.event])
            for event in truth.truth.events
            if event.role != "other" and roles[event.event] != event.role
        }
        assert wrong == set()
