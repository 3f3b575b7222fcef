"""A pipeline: the layers of each stage, and the share of a cycle in which a stage computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.commands.ranks.job_layout import JobLayout
from traceanalyzer.intervals import union_ns


@dataclass(frozen=True, eq=False)
class Pipeline:
    """How the stages of a pipeline work together. Times in ns per step.

    Attributes:
        layers: transformer blocks of each stage; None where the ranks of a stage disagree or none is at hand.
        total_layers: their sum; None where one, or the number of stages, is unknown.
        bubble_share: of all stages' time, the share in which they neither work nor transfer; collectives within a
            stage count as its work.
        stages: stage, ranks, layers, cycle_ns (from one step's start to the next), work_ns, transfer_ns, wait_ns
            (in send and receive), idle_ns, bubble_share.
        steps: number of cycles that this rests on (on the stage with the fewest).
    """

    layers: tuple[int | None, ...]
    total_layers: int | None
    bubble_share: float | None
    stages: pl.DataFrame
    steps: int


def find_pipeline(
    events: pl.DataFrame, transfers: pl.DataFrame, layout: JobLayout, layers: dict[int, int | None]
) -> Pipeline | None:
    """Measure a pipeline; None where the job has a single stage.

    Args:
        events: columns of rank_events.EVENT_COLUMNS, sorted by rank and start.
        transfers: paired sends and receives as ``waiting.split`` returns them.
    """
    if layout.size("pp") < 2:
        return None
    stage_of = {rank: place["pp"] for rank, place in layout.coordinates.items()}
    cycles = _cycles(events, transfers)
    stage = pl.col("rank").replace_strict(stage_of, return_dtype=pl.Int32)
    by_stage = (
        cycles.with_columns(stage=stage)
        .group_by("stage")
        .agg(
            pl.col("rank").unique().sort().alias("ranks"),
            pl.col("cycle_ns", "work_ns", "transfer_ns", "wait_ns").mean(),
            steps=(pl.len() / pl.col("rank").n_unique()).cast(pl.Int64),
        )
        .sort("stage")
    )
    counts = [_agreed([layers.get(rank) for rank, of in stage_of.items() if of == s]) for s in range(layout.size("pp"))]
    known = [count for count in counts if count is not None]
    busy = pl.col("work_ns") + pl.col("transfer_ns")
    stages = by_stage.with_columns(
        layers=pl.col("stage").replace_strict(dict(enumerate(counts)), return_dtype=pl.Int64),
        idle_ns=(pl.col("cycle_ns") - busy - pl.col("wait_ns")).clip(lower_bound=0),
        bubble_share=(1 - busy / pl.col("cycle_ns")).clip(lower_bound=0),
    )
    return Pipeline(
        layers=tuple(counts),
        total_layers=sum(known) if len(known) == len(counts) and layout.sizes.get("pp") else None,
        bubble_share=_mean_bubble(stages),
        stages=stages,
        steps=min(stages["steps"].to_list(), default=0),
    )


def _agreed(counts: list[int | None]) -> int | None:
    known = {count for count in counts if count is not None}
    return known.pop() if len(known) == 1 else None


def _mean_bubble(stages: pl.DataFrame) -> float | None:
    """Bubbles over cycles, summed over stages: every stage weighs the same."""
    share = stages["bubble_share"].mean()
    return share if isinstance(share, float) else None


def _cycles(events: pl.DataFrame, transfers: pl.DataFrame) -> pl.DataFrame:
    """One row per rank and whole step: cycle, work (kernels other than send and receive), transfer and waiting in ns.

    A cycle reaches from the first event of a step to the first of the next one. The last step has no next one: it
    counts only where a rank has no other, and then reaches to the last event of all ranks.
    """
    in_steps = events.filter("counts", "is_kernel")
    starts = in_steps.group_by("rank", "step").agg(start=pl.col("start_ns").min()).sort("rank", "step")
    end_of_all = (events["start_ns"] + events["dur_ns"]).max()
    following = pl.col("start").shift(-1).over("rank")
    adjacent = (pl.col("step").shift(-1).over("rank") - pl.col("step")) == 1
    only = pl.len().over("rank") == 1
    bounded = starts.with_columns(
        cycle_ns=pl.when(adjacent)
        .then(following - pl.col("start"))
        .when(only)
        .then(pl.lit(end_of_all, dtype=pl.Int64) - pl.col("start"))
    ).filter(pl.col("cycle_ns") > 0)
    worked = (
        in_steps.filter(pl.col("kind").is_null() | (pl.col("kind") != "send_recv"))
        .group_by("rank", "step", maintain_order=True)
        .agg(work_ns=union_ns())
    )
    moved = (
        transfers.join(events.select("event", "step"), on="event")
        .group_by("rank", "step")
        .agg(pl.col("transfer_ns").sum(), pl.col("wait_ns").sum())
    )
    return (
        bounded.join(worked, on=["rank", "step"], how="left")
        .join(moved, on=["rank", "step"], how="left")
        .with_columns(pl.col("work_ns", "transfer_ns", "wait_ns").fill_null(0))
    )
