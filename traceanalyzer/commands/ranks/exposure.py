"""How each rank spends its time: computing, communicating beside that or instead of it, copying, idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.commands.ranks.result import RankDummies
from traceanalyzer.declare import frame_schema
from traceanalyzer.segment import segment

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


def per_rank(events: pl.DataFrame, stage_of: Mapping[int, int], layers: Mapping[int, int | None]) -> pl.DataFrame:
    """Return the exposure of each rank over the whole recording, with its stage and layers."""
    known = pl.DataFrame(
        {"rank": list(layers), "stage": [stage_of.get(rank) for rank in layers], "layers": list(layers.values())},
        schema={"rank": pl.Int32, "stage": pl.Int32, "layers": pl.Int64},
    )
    return known.join(exposure(events, ["rank"]), on="rank", how="left").sort("rank")


def per_step(by_step: pl.DataFrame, events: pl.DataFrame, calls: pl.DataFrame, ranks: Sequence[int]) -> pl.DataFrame:
    """Sum exposure and waiting over the steps that count, by rank."""
    sums = by_step.group_by("rank").agg(pl.len().alias("steps"), pl.col(*EXPOSURE_COLUMNS).sum())
    counted = calls.join(events.filter("counts").select("event"), on="event", how="semi")
    waited = counted.group_by("rank").agg(pl.col("wait_ns").sum())
    base = pl.DataFrame({"rank": ranks}, schema={"rank": pl.Int32})
    joined = base.join(sums, on="rank", how="left").join(waited, on="rank", how="left")
    return joined.with_columns(pl.exclude("rank").fill_null(0)).sort("rank")


def layers_of(members: Sequence[Member]) -> dict[int, int | None]:
    """Transformer blocks of each rank: the most common count over its complete steps; None where none was found."""
    layers: dict[int, int | None] = {}
    for member in members:
        steps = _complete_steps(member).filter(pl.col("phase") != "dummy", pl.col("blocks") > 0)
        common = steps.group_by("blocks").len().sort(["len", "blocks"], descending=True)
        layers[member.rank] = None if common.is_empty() else int(common["blocks"][0])
    return layers


def dummy_steps(members: Sequence[Member]) -> pl.DataFrame:
    """Count the steps that data-parallel ranks ran without requests, only because the others had some.

    One row for each rank that ran such a step, in the columns of ``RankDummies``.
    """
    rows = []
    for member in members:
        steps = _complete_steps(member).filter(pl.col("kernels") > 0)
        idle = steps.filter(pl.col("phase") == "dummy")
        rows.append((member.rank, steps.height, idle.height, int(idle["span_ns"].sum())))
    return pl.DataFrame(rows, schema=frame_schema(RankDummies), orient="row").filter(pl.col("dummy_steps") > 0)


def _complete_steps(member: Member) -> pl.DataFrame:
    own = pl.col("device").eq_missing(pl.lit(member.device, dtype=pl.Int32))
    return segment(member.trace).steps.filter("complete", own)
