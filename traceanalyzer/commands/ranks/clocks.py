"""Clock offsets between ranks, from collectives: a call ends on all its ranks at the same moment.

A collective can leave a rank only once every rank has contributed, so that the ends of one call differ by less than
its transfer, while its starts differ by as much as the ranks do. The median over calls of a rank's end against the
others' is its offset; the median of what remains is the residual.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

MATCHED_CALLS = 2
"""Calls that an offset must rest on; chosen, not fitted."""

_FIRSTS = {"group": pl.Categorical(), "first": pl.Int32()}

BASE_TIME = "baseTimeNanoseconds"

NEGLIGIBLE_NS = 5_000
"""Offsets below this are left alone: kernels leave a collective that far apart. Chosen, not fitted."""


@dataclass(frozen=True)
class Clocks:
    """How the ranks' clocks were put on one.

    Attributes:
        method: ``baseTimeNanoseconds``, ``matched collectives``, ``file clock``, or ``single rank``.
        offsets_ns: by rank, what was added to its times; zeros where its clock was believed.
        residual_ns: median distance of the ends of one call after that; None without a paired call.
        calls: calls that the residual rests on.
        unaligned: ranks that no collective ties to the others.
    """

    method: str
    offsets_ns: dict[int, int]
    residual_ns: float | None
    calls: int
    unaligned: tuple[int, ...]


def align(paired: pl.DataFrame, ranks: Sequence[int], *, based: bool) -> Clocks:
    """Estimate offsets from paired calls (columns of pairing.PAIRED_SCHEMA) and apply those that matter.

    Args:
        based: whether every file gives its base time, so that the clocks should agree already.
    """
    if len(ranks) < 2:
        return Clocks("single rank", dict.fromkeys(ranks, 0), None, 0, ())
    offsets = _offsets(paired, ranks)
    unaligned = tuple(rank for rank in ranks if rank not in offsets)
    base_method = BASE_TIME if based else "file clock"
    untouched = dict.fromkeys(ranks, 0)
    before = residual(paired, untouched)
    calls = paired["call"].n_unique()
    if not offsets or before is None:
        return Clocks(base_method, untouched, before, calls, tuple(ranks))
    applied = {rank: offsets.get(rank, 0) for rank in ranks}
    after = residual(paired, applied)
    if max(abs(offset) for offset in applied.values()) <= NEGLIGIBLE_NS or after is None or after >= before:
        return Clocks(base_method, untouched, before, calls, unaligned)
    return Clocks("matched collectives", applied, after, calls, unaligned)


def residual(paired: pl.DataFrame, offsets_ns: dict[int, int]) -> float | None:
    """Median over calls of the distance between the first and the last end, with offsets applied."""
    if paired.is_empty():
        return None
    shifted = pl.col("rank").replace_strict(offsets_ns, return_dtype=pl.Int64)
    end = pl.col("start_ns") + pl.col("dur_ns") + shifted
    spread = paired.group_by("call").agg(spread=end.max() - end.min())["spread"].median()
    return spread if isinstance(spread, float) else None


def _offsets(paired: pl.DataFrame, ranks: Sequence[int]) -> dict[int, int]:
    """What to add to each rank's times so that its ends meet those of the lowest rank it is tied to."""
    edges = _edges(paired)
    if not edges:
        return {}
    tied: dict[int, dict[int, int]] = {}
    for (a, b), offset in edges.items():
        tied.setdefault(a, {})[b] = offset
        tied.setdefault(b, {})[a] = -offset
    start = min(tied)
    offsets, frontier = {start: 0}, [start]
    while frontier:
        reached = []
        for rank in frontier:
            for other, offset in tied[rank].items():
                if other not in offsets:
                    offsets[other] = offsets[rank] + offset
                    reached.append(other)
        frontier = reached
    return {rank: offset for rank, offset in offsets.items() if rank in ranks}


def _edges(paired: pl.DataFrame) -> dict[tuple[int, int], int]:
    """By (first rank of a group, other rank of it): median of how far the other's clock lags."""
    if paired.is_empty():
        return {}
    end = pl.col("start_ns") + pl.col("dur_ns")
    firsts = {text: min(json.loads(text)) for text in paired["group"].unique().to_list()}
    first = pl.DataFrame({"group": list(firsts), "first": list(firsts.values())}, schema=_FIRSTS)
    with_first = paired.join(first, on="group").with_columns(end=end)
    reference = with_first.filter(pl.col("rank") == pl.col("first")).select("call", reference="end")
    lag = (
        with_first.filter(pl.col("rank") != pl.col("first"))
        .join(reference, on="call")
        .group_by("first", "rank")
        .agg(lag=(pl.col("reference") - pl.col("end")).median(), calls=pl.len())
        .filter(pl.col("calls") >= MATCHED_CALLS)
    )
    return {(first, rank): round(offset) for first, rank, offset, _ in lag.iter_rows()}
