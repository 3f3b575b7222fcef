"""Speculative decoding: a pass of the model, then passes of a draft model of one layer, in every step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from synthetic import TraceSpec, generate, models, variety, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

SHALLOW = {
    f"{layers} layers, {drafts} drafts": variety.speculative(layers, drafts)
    for layers in (1, 2, 3)
    for drafts in (1, 3)
}
NO_MARKERS = {
    f"no markers, {launch}, {layers} layers": replace(
        variety.speculative(layers, 2, steps=3), engine="none", launch=launch
    )
    for launch in ("graph", "eager")
    for layers in (2, 9)
}
CASES: dict[str, TraceSpec] = {
    **SHALLOW,
    **NO_MARKERS,
    "no markers, cut off in a draft": replace(variety.speculative(4, 2, steps=3), engine="none", cut_last_step=65),
}


@pytest.mark.parametrize("name", CASES)
def test_every_pass_has_its_blocks_and_the_drafts_belong_to_the_step(name: str, tmp_path: Path) -> None:
    made = generate(CASES[name], 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []


def test_without_markers_equal_passes_in_a_row_stay_steps_of_their_own(tmp_path: Path) -> None:
    made = generate(replace(models.llama_decode(layers=4, steps=5), engine="none"), 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert found.steps["blocks"].to_list() == [4] * 5
