"""Traces in the shape of recordings, and recordings themselves, against the truth: sums, steps and blocks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl
import pytest

import traceanalyzer as ta
from tests.support.known_traces import known_names, known_trace
from traceanalyzer.segment import segment


@pytest.fixture(scope="module", params=known_names())
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ta.Trace, dict[str, Any]]:
    path, truth = known_trace(request.param, tmp_path_factory.mktemp("known"))
    return ta.open_traces(path, cache=False).traces[0], truth


def test_time_by_kernel_name_is_exact(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    rows = ta.hotspots(trace).rows
    told = {row["name"]: (row["count"], row["total_ns"]) for row in rows.iter_rows(named=True)}
    want = {name: (t["count"], round(t["total_us"] * 1000)) for name, t in truth["kernel_totals"].items()}
    assert told == want


def test_steps_are_found_with_their_kernels(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    steps = ta.steps(trace)
    wanted = truth["steps"]
    assert steps["kernels"].to_list() == [step["n_kernels"] for step in wanted]
    assert steps["events"].to_list() == [step["n_gpu_events"] for step in wanted]
    assert steps["kernel_sum_ns"].to_list() == [round(step["kernel_sum_us"] * 1000) for step in wanted]
    assert steps["complete"].to_list() == [is_complete(step) for step in wanted]
    assert steps["blocks"].to_list() == [step["n_blocks"] for step in wanted]


def is_complete(step: dict[str, Any]) -> bool:
    return bool(step.get("complete", "orphan" not in step["phase"]))


def test_blocks_start_and_end_where_they_should(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    cut = segment(trace)
    for number, step in enumerate(truth["steps"]):
        if not step["n_blocks"]:
            continue
        blocks = cut.blocks.filter(pl.col("step") == number)
        assert blocks["events"].to_list() == [block["n_events"] for block in step["blocks"]]
        assert blocks["kernels"].to_list() == [block["n_kernels"] for block in step["blocks"]]
        events = cut.events.filter(pl.col("step") == number).with_row_index("at")
        by_block = events.filter(pl.col("section") == "block").group_by("block")
        sums = by_block.agg(pl.col("at").min(), pl.col("dur_ns").sum()).sort("block")
        assert sums["at"].to_list() == [block["start"] for block in step["blocks"]]
        assert sums["dur_ns"].to_list() == [round(block["sum_us"] * 1000) for block in step["blocks"]]
        if is_complete(step):
            assert events.filter(pl.col("section") == "prologue").height == step["prologue_events"]
            assert events.filter(pl.col("section") == "epilogue").height == step["epilogue_events"]


def test_variants_group_the_blocks_of_the_truth(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    blocks = segment(trace).blocks
    for number, step in enumerate(truth["steps"]):
        if not is_complete(step):
            continue
        told, wanted = defaultdict[str, set[int]](set), defaultdict[Any, set[int]](set)
        for block, variant in blocks.filter(pl.col("step") == number).select("block", "variant").iter_rows():
            told[variant].add(block)
        for block, entry in enumerate(step.get("blocks", [])):
            wanted[entry["variant"]].add(block)
        assert sorted(map(sorted, told.values())) == sorted(map(sorted, wanted.values()))


def test_every_device_event_is_in_one_place(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    cut = segment(trace)
    assert cut.events.height == truth["n_gpu_events"]
    assert cut.events["index"].n_unique() == cut.events.height
    for by in ("kernel", "role", "family"):
        spots = ta.hotspots(trace, by=by)
        assert spots.rows["total_ns"].sum() + spots.copies["total_ns"].sum() == cut.events["dur_ns"].sum()
        assert spots.rows["share"].sum() == pytest.approx(1)
