"""How evenly the experts' work is spread over the ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

EXPERT_ROLES = ("moe_gate_up", "moe_down")
EXCHANGES = ("dispatch", "combine", "all_to_all", "all_gather", "reduce_scatter")


@dataclass(frozen=True, eq=False)
class Experts:
    """Time of expert kernels.

    Attributes:
        per_rank_ns: expert products of each rank in complete steps, dummies included: a rank without requests of its
            own still computes other ranks' tokens.
        max_over_mean: the busiest rank over the mean, both per step.
        coefficient_of_variation: standard deviation over mean.
        busiest: the rank whose time is furthest above the mean of its stage.
        excess_ns: what it takes beyond that mean per step.
        combine_wait_ns: by rank, waiting in the exchange that follows the experts; None where there is none.
        mean_combine_wait_ns: the same per step, mean over the ranks.
        parallel: whether tokens are exchanged with other ranks' experts.
    """

    per_rank_ns: dict[int, int]
    max_over_mean: float | None
    coefficient_of_variation: float | None
    busiest: int
    excess_ns: float
    combine_wait_ns: dict[int, int] | None
    mean_combine_wait_ns: float | None
    parallel: bool


def find_experts(events: pl.DataFrame, calls: pl.DataFrame, stage_of: Mapping[int, int]) -> Experts | None:
    """Sum the experts' time by rank; None where no rank computes experts.

    Args:
        events: columns of rank_events.EVENT_COLUMNS.
        calls: collectives as ``waiting.split`` returns them, and ``step``.
        stage_of: pipeline stage of each rank: stages of unequal depth are compared within themselves only.
    """
    role = pl.col("role").cast(pl.String)
    whole = events.filter("whole")
    sums = whole.filter(role.is_in(EXPERT_ROLES)).group_by("rank").agg(ns=pl.col("dur_ns").sum()).sort("rank")
    if sums.is_empty():
        return None
    # Recordings need not hold equally many steps.
    steps = whole.group_by("rank").agg(steps=pl.col("step").n_unique())
    stages = pl.col("rank").replace_strict(dict(stage_of), default=0, return_dtype=pl.Int32)
    each = sums.join(steps, on="rank", maintain_order="left").with_columns(
        stage=stages, per_step=pl.col("ns") / pl.col("steps")
    )
    mean = pl.col("per_step").mean().over("stage")
    relative = each.with_columns(load=pl.col("per_step") / mean, excess=pl.col("per_step") - mean)
    busiest, excess = relative.sort("excess", "rank", descending=[True, False]).select("rank", "excess").row(0)
    exchanged = calls.filter(pl.col("kind").is_in(EXCHANGES))
    loads = relative["load"]
    several = sums.height > 1
    deviation = loads.std(ddof=0) if several else None
    greatest = loads.max() if several else None
    after = _calls_after_experts(events, exchanged)
    waited = after.group_by("rank").agg(ns=pl.col("wait_ns").sum(), steps=pl.col("step").n_unique()).sort("rank")
    waited_per_step = (waited["ns"] / waited["steps"]).mean()
    return Experts(
        per_rank_ns=dict(sums.select("rank", "ns").iter_rows()),
        max_over_mean=greatest if isinstance(greatest, float) else None,
        coefficient_of_variation=deviation if isinstance(deviation, float) else None,
        busiest=busiest,
        excess_ns=excess,
        combine_wait_ns=None if waited.is_empty() else dict(waited.select("rank", "ns").iter_rows()),
        mean_combine_wait_ns=waited_per_step if isinstance(waited_per_step, float) else None,
        parallel=bool(exchanged["kind"].is_in(["dispatch", "combine", "all_to_all"]).any()),
    )


def _calls_after_experts(events: pl.DataFrame, exchanged: pl.DataFrame) -> pl.DataFrame:
    """Exchanges that follow the second expert product of a block, before the next block's."""
    products = (
        events.filter(pl.col("role").cast(pl.String) == EXPERT_ROLES[1]).select("rank", "start_ns").sort("start_ns")
    )
    if products.is_empty() or exchanged.is_empty():
        return exchanged.clear()
    placed = exchanged.sort("start_ns").join_asof(
        products.with_columns(product_ns=pl.col("start_ns")),
        on="start_ns",
        by="rank",
        strategy="backward",
        check_sortedness=False,
    )
    after = placed.filter(pl.col("product_ns").is_not_null())
    first = pl.col("start_ns") == pl.col("start_ns").min().over("rank", "product_ns")
    return after.filter(first)
