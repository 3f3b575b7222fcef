"""The real GPU traces against their ground truth: sums, steps and blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import traceanalyzer as ta
from traceanalyzer.segment import segment

NAMES = ("gptoss20b_vllm_decode_mi300x", "qwen3_8b_sglang_decode_mi300x", "qwen1.5_0.5b_hf_h100")


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest, shared: Path) -> tuple[ta.Trace, dict[str, Any]]:
    truth = json.loads((shared / "expected" / f"{request.param}.json").read_text(encoding="utf-8"))
    return ta.open_traces(shared / truth["path"], cache=False).traces[0], truth


def test_time_by_kernel_name_is_exact(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    rows = ta.hotspots(trace).rows
    found = {row["name"]: (row["count"], row["total_ns"]) for row in rows.iter_rows(named=True)}
    want = {name: (t["count"], round(t["total_us"] * 1000)) for name, t in truth["kernel_totals"].items()}
    assert found == want


def test_steps_are_found_with_their_kernels(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    steps = ta.steps(trace)
    wanted = truth["steps"]
    assert steps["kernels"].to_list() == [step["n_kernels"] for step in wanted]
    assert steps["events"].to_list() == [step["n_gpu_events"] for step in wanted]
    assert steps["kernel_sum_ns"].to_list() == [round(step["kernel_sum_us"] * 1000) for step in wanted]
    assert steps["complete"].to_list() == ["orphan" not in step["phase"] for step in wanted]
    assert steps["blocks"].to_list() == [step["n_blocks"] for step in wanted]


def test_blocks_start_and_end_where_they_should(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    cut = segment(trace)
    for index, step in enumerate(truth["steps"]):
        if not step["n_blocks"]:
            continue
        blocks = cut.blocks.filter(pl.col("step") == index)
        assert blocks["events"].to_list() == [b["n_events"] for b in step["blocks"]]
        assert blocks["kernels"].to_list() == [b["n_kernels"] for b in step["blocks"]]
        events = cut.events.filter(pl.col("step") == index)
        sums = events.filter(pl.col("section") == "block").group_by("block").agg(pl.col("dur_ns").sum()).sort("block")
        assert sums["dur_ns"].to_list() == [round(b["sum_us"] * 1000) for b in step["blocks"]]
        assert events.filter(pl.col("section") == "prologue").height == step["prologue_events"]
        assert events.filter(pl.col("section") == "epilogue").height == step["epilogue_events"]
        found = blocks["variant"].to_list()
        wanted = [b["variant"] for b in step["blocks"]]
        assert len(set(zip(found, wanted, strict=True))) == len(set(wanted)) == len(set(found))


def test_every_device_event_is_in_one_place(case: tuple[ta.Trace, dict[str, Any]]) -> None:
    trace, truth = case
    cut = segment(trace)
    assert cut.events.height == truth["n_gpu_events"]
    assert cut.events["index"].n_unique() == cut.events.height
    for by in ("kernel", "role", "family"):
        spots = ta.hotspots(trace, by=by)
        assert spots.rows["total_ns"].sum() + spots.copies["total_ns"].sum() == cut.events["dur_ns"].sum()
        assert spots.rows["share"].sum() == pytest.approx(1)
