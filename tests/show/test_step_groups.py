"""Steps of different depth are shown apart everywhere, and an unusual block only where it is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from synthetic import BlockSpec, ModelSpec, TraceSpec, Truth, decode_steps, models
from traceanalyzer.commands.blocks.plot import block_strip
from traceanalyzer.commands.blocks.view import document
from traceanalyzer.commands.export.formats.tracks import tracks_of
from traceanalyzer.commands.report.gather import gather_trace
from traceanalyzer.commands.report.strip import strips_of
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.show.step_groups import step_groups
from traceanalyzer.trace import Trace


@pytest.fixture
def trace(open_spec: Callable[..., tuple[Trace, Truth]]) -> Trace:
    """Decode steps: four of 16 blocks, and three of 6 blocks of which the fourth takes half as long again."""
    deep, shallow = models.llama_dense(16), with_slow_block(models.llama_dense(6), 4)
    steps = [replace(step, model=model) for model, n in ((deep, 4), (shallow, 3)) for step in decode_steps(n, batch=8)]
    return open_spec(TraceSpec(model=deep, steps=tuple(steps)))[0]


def with_slow_block(model: ModelSpec, number: int) -> ModelSpec:
    layers = list(model.layers)
    slow = tuple(replace(kernel, dur_us=kernel.dur_us * 1.5) for kernel in layers[number].kernels)
    layers[number] = BlockSpec(layers[number].kind, slow)
    return replace(model, layers=tuple(layers))


def test_groups_are_of_one_depth(trace: Trace) -> None:
    groups = step_groups(segment(trace))
    assert [(group.phase, group.depth, group.shown.height) for group in groups] == [("decode", 16, 4), ("decode", 6, 3)]
    assert [group.by_block().height for group in groups] == [16, 6]


def test_partial_steps_go_with_complete_ones_and_are_not_shown(trace: Trace) -> None:
    whole = segment(trace)
    steps = whole.steps.with_columns(complete=whole.steps["step"].is_in([0, 1, 2, 4]))
    groups = step_groups(Segmentation(steps, whole.blocks, whole.events))
    assert [(group.depth, group.steps.height, group.shown.height) for group in groups] == [(16, 6, 3), (6, 1, 1)]


def test_the_page_has_a_strip_a_depth_and_names_the_slow_block_in_its_own(trace: Trace) -> None:
    strips, kernels = strips_of(gather_trace(trace), "strip")
    assert [len(strip.cells) for strip in strips] == [16, 6]
    assert [len(strip.notes) for strip in strips] == [0, 1]
    assert strips[1].notes[0].startswith("Block 4 is ")
    for strip in strips:
        for cell in strip.cells:
            own = kernels["strips"][strip.key][str(cell.number)]
            assert sum(row[3] for row in own) == pytest.approx(cell.time_ns, rel=1e-3)


def test_the_plot_has_a_strip_a_depth_and_marks_the_slow_block_in_its_own(trace: Trace) -> None:
    axes = block_strip(segment(trace)).axes
    assert [one.get_title(loc="left").split(" ")[0] for one in axes] == ["16", "6"]
    marked = [[text.get_text() for text in one.texts if "%" in text.get_text()] for one in axes]
    assert [len(texts) for texts in marked] == [0, 1]


def test_the_document_says_of_which_depth_a_block_is_unusual(trace: Trace) -> None:
    (timeline,) = document([(0, segment(trace))], ()).timelines
    assert [(one.blocks, one.steps, one.block) for one in timeline.outliers] == [(6, 3, 4)]


def test_tracks_mark_the_slow_block_in_steps_of_its_depth_only(trace: Trace) -> None:
    found = {track.kind: track.slices for track in tracks_of(trace)}
    shallow = segment(trace).blocks.filter(segment(trace).blocks["step"] >= 4)
    starts = set(shallow.filter(shallow["block"] == 4)["start_ns"].to_list())
    assert {one.start_ns for one in found["findings"] if "slower than its kind" in one.name} == starts
