"""Which ranks end the calls of a collective together: what tells groups apart where nothing else does."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

SAMPLED_CALLS = 500
"""Calls of each group that are looked at; chosen, not fitted."""

SLACK_NS = 500
"""End times of one call this close count as together whatever the clocks' residual; chosen, not fitted."""

CERTAIN_NS = 50_000
"""Ends further apart than this say more about the clocks than about the groups; chosen, not fitted."""


def size_ending_together(calls: pl.DataFrame, world_size: int) -> int | None:
    """The largest number of neighbouring ranks on which one collective's calls end together; else all ranks.

    None where ranks are missing and those at hand would be grouped alike by groups of several sizes.

    Args:
        calls: rank, start_ns, dur_ns of one kind of collective.
        world_size: ranks of the job.
    """
    ranks = calls["rank"].unique().sort().to_list()
    spreads: dict[int, float] = {}
    blocks: dict[int, dict[int, tuple[int, ...]]] = {}
    for size in range(2, world_size + 1):
        if world_size % size:
            continue
        blocks[size] = neighbours(ranks, size)
        spread = spread_ns(calls, blocks[size])
        if spread is not None:
            spreads[size] = spread
    if not spreads or min(spreads.values()) > CERTAIN_NS:
        return world_size
    limit = 2 * min(spreads.values()) + SLACK_NS
    largest = max(size for size, spread in spreads.items() if spread <= limit)
    return largest if list(blocks.values()).count(blocks[largest]) == 1 else None


def neighbours(ranks: Sequence[int], size: int) -> dict[int, tuple[int, ...]]:
    """Return the group of each rank where every ``size`` ranks in order of number form one."""
    return {rank: tuple(other for other in ranks if other // size == rank // size) for rank in ranks}


def spread_ns(own: pl.DataFrame, groups: dict[int, tuple[int, ...]]) -> float | None:
    """Median distance of the ends of one call within the groups; None where the ranks make unequal numbers of calls."""
    texts = {rank: str(list(group)) for rank, group in groups.items()}
    ended = own.with_columns(
        group=pl.col("rank").replace_strict(texts, return_dtype=pl.String),
        k=pl.int_range(pl.len()).over("rank"),
        n=pl.len().over("rank"),
        end=pl.col("start_ns") + pl.col("dur_ns"),
    )
    if ended.select((pl.col("n").n_unique().over("group") > 1).any()).item():
        return None
    spread = (
        ended.filter(pl.col("k") < SAMPLED_CALLS)
        .group_by("group", "k")
        .agg(spread=pl.col("end").max() - pl.col("end").min())
    )["spread"].median()
    return spread if isinstance(spread, float) else None
