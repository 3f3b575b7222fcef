"""Calls are paired within steps: what is lost in one step shifts nothing in another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synthetic.ranks import JobSpec, generate_job, write_job
from traceanalyzer.commands.ranks.compute import compare
from traceanalyzer.commands.ranks.pairing import pair
from traceanalyzer.trace import open_traces


def calls(rows: list[tuple[int, int | None, int, int]]) -> pl.DataFrame:
    """Rank, step, start, duration -> the input of ``pair``."""
    frame = pl.DataFrame(
        rows,
        schema={"rank": pl.Int32, "step": pl.Int32, "start_ns": pl.Int64, "dur_ns": pl.Int64},
        orient="row",
    )
    return frame.with_columns(
        group=pl.lit("[0, 1]"), kind=pl.lit("all_reduce"), counts=pl.lit(True), bytes=pl.lit(None, dtype=pl.Int64)
    ).with_row_index("event")


def partners(paired: pl.DataFrame) -> list[list[int]]:
    return paired.group_by("call", maintain_order=True).agg(pl.col("event"))["event"].to_list()


def test_calls_pair_in_order_within_steps() -> None:
    rows = [(0, 0, 10, 5), (0, 0, 30, 5), (0, 1, 110, 5), (1, 0, 12, 3), (1, 0, 31, 4), (1, 1, 111, 4)]
    paired, left = pair(calls(rows), clocks_agree=True)
    assert partners(paired) == [[0, 3], [1, 4], [2, 5]]
    assert left.is_empty()


def test_a_step_that_only_one_rank_recorded_is_left_out() -> None:
    rows = [(0, 0, 10, 5), (0, 1, 110, 5), (0, 2, 210, 5), (1, 0, 111, 4), (1, 1, 211, 4)]
    paired, left = pair(calls(rows), clocks_agree=True)
    assert partners(paired) == [[1, 3], [2, 4]]
    assert left.select("rank", "calls").rows() == [(0, 1)]


def test_a_call_lost_in_the_middle_costs_its_step_only() -> None:
    rows = [(0, s, 100 * s + 10 * k, 5) for s in range(4) for k in range(3)]
    rows += [(1, s, 100 * s + 10 * k + 1, 4) for s in range(4) for k in range(3) if (s, k) != (1, 1)]
    paired, left = pair(calls(rows), clocks_agree=True)
    assert paired["call"].n_unique() == 9
    assert left["calls"].sum() == 5


def test_a_step_cut_off_at_its_end_pairs_from_its_start() -> None:
    rows = [(0, 0, 0, 5), (0, 1, 100, 5), (0, 1, 110, 5), (1, 0, 1, 4), (1, 1, 101, 4)]
    paired, _ = pair(calls(rows), clocks_agree=True)
    assert partners(paired) == [[0, 3], [1, 4]]


def test_a_step_cut_off_at_its_start_pairs_from_its_end() -> None:
    rows = [(0, 0, 0, 5), (0, 0, 10, 5), (0, 1, 100, 5), (1, 0, 11, 4), (1, 1, 101, 4)]
    paired, _ = pair(calls(rows), clocks_agree=True)
    assert partners(paired) == [[1, 3], [2, 4]]


def test_without_steps_the_recording_is_one_sequence() -> None:
    rows: list[Any] = [(rank, None, 100 * k + rank, 5 - rank) for rank in (0, 1) for k in range(3)]
    paired, left = pair(calls(rows), clocks_agree=False)
    assert paired["call"].n_unique() == 3
    assert left.is_empty()


def test_clocks_far_apart_do_not_shift_recordings_of_equal_length() -> None:
    rows = [(0, s, 1000 * s, 5) for s in range(5)] + [(1, s, 1000 * s + 400_001, 4) for s in range(5)]
    paired, _ = pair(calls(rows), clocks_agree=True)
    assert partners(paired) == [[s, s + 5] for s in range(5)]


def test_lost_kernels_are_counted_and_told(tmp_path: Path) -> None:
    made = generate_job(JobSpec(tp=2, jitter=0.1))
    document = max(made.documents.items())[1]
    reduces = [event for event in document["traceEvents"] if "cross_device_reduce" in str(event.get("name"))]
    document["traceEvents"].remove(sorted(reduces, key=lambda event: event["ts"])[10])
    found = compare(open_traces(write_job(made, tmp_path / "job"), cache=False))
    assert found.collectives["calls"].to_list() == [16]
    assert found.unpaired.select("rank", "calls").rows() == [(0, 8), (1, 7)]
    (warning,) = (warning for warning in found.warnings if warning.code == "unpaired_calls")
    assert warning.count == 15


@pytest.mark.parametrize("ahead", [0, 1_000_000])
def test_a_recording_that_starts_later_pairs_by_time(tmp_path: Path, ahead: int) -> None:
    job = JobSpec(tp=2, steps=8, jitter=0.1, first_step={1: 2}, clock_error_ns={1: ahead})
    made = generate_job(job)
    found = compare(open_traces(write_job(made, tmp_path / "job"), cache=False))
    (truth,) = made.truth.collectives
    assert found.collectives["transfer_ns"].to_list() == [truth.transfer_ns]
