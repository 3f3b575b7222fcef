"""How each rank spends its time: computing, communicating beside that or instead of it, copying, idle."""

from __future__ import annotations

import polars as pl

from traceanalyzer.intervals import union_ns

EXPOSURE_COLUMNS = ("span_ns", "compute_ns", "comm_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
"""Lengths of unions over all streams. compute + exposed_comm + exposed_copy + idle = span."""


def exposure(events: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Split the time from the first to the last event of each group of rows.

    compute: some kernel that is no communication runs. comm: some communication kernel runs; exposed: and no compute
    kernel does. exposed_copy: only copies or memsets run. idle: nothing runs.

    Args:
        events: columns of events.EVENT_COLUMNS, sorted by rank and start.
        by: columns to group by, such as rank.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    groups = events.group_by(by, maintain_order=True)
    spans = groups.agg(span_ns=end.max() - pl.col("start_ns").min(), all_ns=union_ns())
    compute = events.filter("is_kernel", ~pl.col("is_comm"))
    kernels = events.filter("is_kernel")
    comm = events.filter("is_comm")
    for frame, name in ((compute, "compute_ns"), (kernels, "kernels_ns"), (comm, "comm_ns")):
        union = frame.group_by(by, maintain_order=True).agg(union_ns().alias(name))
        spans = spans.join(union, on=by, how="left", nulls_equal=True)
    return (
        spans.with_columns(pl.col("compute_ns", "kernels_ns", "comm_ns").fill_null(0))
        .with_columns(
            exposed_comm_ns=pl.col("kernels_ns") - pl.col("compute_ns"),
            exposed_copy_ns=pl.col("all_ns") - pl.col("kernels_ns"),
            idle_ns=pl.col("span_ns") - pl.col("all_ns"),
        )
        .select(*by, *EXPOSURE_COLUMNS)
        .sort(by)
    )
