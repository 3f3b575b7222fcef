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
        max_over_mean: the busiest rank over the mean.
        coefficient_of_variation: standard deviation over mean.
        combine_wait_ns: by rank, waiting in the exchange that follows the experts; null where there is none.
        parallel: whether tokens are exchanged with other ranks' experts.
    """

    per_rank_ns: dict[int, int]
    max_over_mean: float | None
    coefficient_of_variation: float | None
    combine_wait_ns: dict[int, int] | None
    parallel: bool


def find_experts(events: pl.DataFrame, calls: pl.DataFrame, stage_of: Mapping[int, int]) -> Experts | None:
    """Sum the experts' time by rank; null where no rank computes experts.

    Args:
        events: columns of events.EVENT_COLUMNS.
        calls: collectives as waiting.split returns them, and ``event``.
        stage_of: pipeline stage of each rank: stages of unequal depth are compared within themselves only.
    """
    role = pl.col("role").cast(pl.String)
    sums = events.filter(role.is_in(EXPERT_ROLES), "whole").group_by("rank").agg(ns=pl.col("dur_ns").sum()).sort("rank")
    if sums.is_empty():
        return None
    stages = pl.col("rank").replace_strict(dict(stage_of), default=0, return_dtype=pl.Int32)
    relative = sums.with_columns(stage=stages).with_columns(load=pl.col("ns") / pl.col("ns").mean().over("stage"))
    exchanged = calls.filter(pl.col("kind").is_in(EXCHANGES))
    loads = relative["load"]
    several = sums.height > 1
    deviation = loads.std(ddof=0) if several else None
    greatest = loads.max() if several else None
    return Experts(
        per_rank_ns=dict(sums.select("rank", "ns").iter_rows()),
        max_over_mean=greatest if isinstance(greatest, float) else None,
        coefficient_of_variation=deviation if isinstance(deviation, float) else None,
        combine_wait_ns=_combine_wait(events, exchanged),
        parallel=bool(exchanged["kind"].is_in(["dispatch", "combine", "all_to_all"]).any()),
    )


def _combine_wait(events: pl.DataFrame, exchanged: pl.DataFrame) -> dict[int, int] | None:
    """Waiting in the first exchange after the experts of each block."""
    after = _calls_after_experts(events, exchanged)
    if after.is_empty():
        return None
    waited = after.group_by("rank").agg(ns=pl.col("wait_ns").sum()).sort("rank")
    return dict(waited.select("rank", "ns").iter_rows())


def _calls_after_experts(events: pl.DataFrame, exchanged: pl.DataFrame) -> pl.DataFrame:
    """Exchanges that follow the second expert product of a block, before the next block's."""
    products = (
        events.filter(pl.col("role").cast(pl.String) == EXPERT_ROLES[1])
        .select("rank", "start_ns", "step", "block")
        .sort("start_ns")
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
    found = placed.filter(pl.col("product_ns").is_not_null())
    first = pl.col("start_ns") == pl.col("start_ns").min().over("rank", "product_ns")
    return found.filter(first)
