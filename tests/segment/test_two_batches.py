"""Two batches at once (dual-batch overlap): one computes while the other communicates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from synthetic import TraceSpec, generate, variety, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

EAGER = replace(variety.dual_batch_overlap(12), launch="eager")

CASES: dict[str, TraceSpec] = {
    "eager: overlap is mostly of collectives": EAGER,
    "eager, few layers": replace(variety.dual_batch_overlap(2), launch="eager"),
    "one layer, the step's ends on one stream": variety.dual_batch_overlap(1),
    "one layer, eager": replace(variety.dual_batch_overlap(1), launch="eager"),
    "cut off before the second batch begins": replace(variety.dual_batch_overlap(6, steps=3), cut_last_step=8),
    "cut off while both run": replace(variety.dual_batch_overlap(6, steps=3), cut_last_step=60),
    "cut off while both run, eager": replace(variety.dual_batch_overlap(6, steps=3), launch="eager", cut_last_step=60),
}


@pytest.mark.parametrize("name", CASES)
def test_each_batch_has_its_own_blocks(name: str, tmp_path: Path) -> None:
    made = generate(CASES[name], 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []


@pytest.mark.parametrize("launch", ["graph", "eager"])
def test_layers_count_once_and_each_batch_is_a_pass(launch: str, tmp_path: Path) -> None:
    made = generate(replace(variety.dual_batch_overlap(6), launch=launch), 1)  # type: ignore[arg-type]
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert found.steps["blocks"].to_list() == [6, 6]
    passes = [(one["kind"], one["blocks"]) for one in found.steps["passes"][0]]
    assert passes == [("micro_batch", 6), ("micro_batch", 6)]
