"""How each rank spends its time: computing, communicating beside that or instead of it, copying, idle."""

from __future__ import annotations

import polars as pl

EXPOSURE_COLUMNS = ("span_ns", "compute_ns", "comm_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
"""Lengths of unions over all streams. compute + exposed_comm + exposed_copy + idle = span."""


def exposure(events: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Split the time from the first to the last event of each group of rows.

    compute: some kernel other than communication runs. comm: some communication kernel runs; exposed: and no compute
    kernel does. exposed_copy: only copies or memsets run. idle: nothing runs.

    Args:
        events: columns of rank_events.EVENT_COLUMNS, sorted by rank and start.
        by: columns to group by, rank first. What two groups of one rank cover at once counts for the earlier one.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    times = events.group_by(by).agg(span_ns=end.max() - pl.col("start_ns").min())
    for frame, name in (
        (events, "all_ns"),
        (events.filter("is_kernel"), "kernels_ns"),
        (events.filter("is_kernel", ~pl.col("is_comm")), "compute_ns"),
        (events.filter("is_comm"), "comm_ns"),
    ):
        times = times.join(_covered(frame, by, name), on=by, how="left", nulls_equal=True)
    return (
        times.with_columns(pl.col("all_ns", "kernels_ns", "compute_ns", "comm_ns").fill_null(0))
        .with_columns(
            exposed_comm_ns=pl.col("kernels_ns") - pl.col("compute_ns"),
            exposed_copy_ns=pl.col("all_ns") - pl.col("kernels_ns"),
            idle_ns=pl.col("span_ns") - pl.col("all_ns"),
        )
        .select(*by, *EXPOSURE_COLUMNS)
        .sort(by)
    )


def _covered(events: pl.DataFrame, by: list[str], name: str) -> pl.DataFrame:
    """Length of the union of each group's intervals.

    One running maximum serves all ranks, because each rank is moved beyond the end of the one before: a window per
    rank would cost ten times as much.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    if events.is_empty():
        return events.select(by).with_columns(pl.lit(0, dtype=pl.Int64).alias(name))
    width = int(events.select(end.max() - pl.col("start_ns").min() + 1).item())
    apart = events.select(*by, "dur_ns", at=pl.col("start_ns") + pl.col("rank").cast(pl.Int64) * width)
    until = pl.col("at") + pl.col("dur_ns")
    reached = pl.max_horizontal(until.cum_max().shift(1), "at")
    added = apart.select(*by, added=(until - reached).clip(lower_bound=0))
    return added.group_by(by).agg(pl.col("added").sum().alias(name))
