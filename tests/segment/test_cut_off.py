"""A recording that stops inside a step: the rest is a step of its own, incomplete, with the blocks it really has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from synthetic import DroppedKernel, ForeignKernel, TraceSpec, generate, models, write
from synthetic import catalogue as k
from synthetic.spec import Launch
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

SHALLOW = models.llama_decode(layers=2, steps=2)
DEEP = models.llama_decode(layers=20, steps=2)
STRANGER = k.small(k.H100, "void at::native::vectorized_elementwise_kernel<4, float>(int, float)", "other")
STRANGERS = tuple(ForeignKernel(step, block, STRANGER) for step, block in ((0, 1), (1, 0), (1, 0), (1, 0)))
ONLY_INPUTS = {
    f"no markers, {launch}, cut off {when}": replace(DEEP, launch=launch, engine="none", cut_last_step=after)
    for launch in ("graph", "piecewise", "eager")
    for when, after in (("among the input copies", 2), ("ahead of the first block", 5), ("in the first block", 9))
}
CASES: dict[str, TraceSpec] = {
    **ONLY_INPUTS,
    "strangers' kernels among few others": replace(SHALLOW, foreign=STRANGERS, cut_last_step=14),
    "strangers' kernels, eager": replace(SHALLOW, foreign=STRANGERS, cut_last_step=14, launch="eager"),
    "kernels lost in both steps": replace(
        SHALLOW, dropped=(DroppedKernel(0, 1, 5), DroppedKernel(1, 0, 6)), cut_last_step=16
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rest_is_an_incomplete_step(name: str, tmp_path: Path) -> None:
    made = generate(CASES[name], 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []
    assert found.steps["complete"].to_list() == [True, False]


@pytest.mark.parametrize("launch", ["graph", "eager"])
def test_a_single_whole_step_keeps_its_end(launch: Launch, tmp_path: Path) -> None:
    spec = replace(DEEP, steps=DEEP.steps[:1], launch=launch, engine="none")
    made = generate(spec, 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []
