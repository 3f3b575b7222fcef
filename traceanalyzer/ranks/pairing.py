"""The k-th collective of a group on every rank is one call: how calls are told across ranks.

Calls are counted within steps, so that an event the profiler lost shifts nothing beyond its step. Steps are matched by
the ends of their collectives, because recordings need not start in the same step on all ranks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

FloatArray = npt.NDArray[np.float64]

SEARCHED_SHIFTS = 8
"""Steps by which recordings may start apart, beyond what their clocks tell."""

KEYS = ("group", "kind")

PAIRED_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),  # ranks as JSON text
    "kind": pl.String(),
    "call": pl.UInt32(),  # 0, 1, ... within group and kind, in order of time
    "rank": pl.Int32(),
    "start_ns": pl.Int64(),
    "dur_ns": pl.Int64(),
    "counts": pl.Boolean(),  # in complete steps that are no dummies, on every rank
    "bytes": pl.Int64(),
    "event": pl.UInt32(),  # row of the frame of events
}
"""One row a call and rank; every call has a row for each rank of its group that is at hand."""


def pair(calls: pl.DataFrame, *, clocks_agree: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pair the calls of collectives across ranks.

    Args:
        calls: group, kind, rank, step, start_ns, dur_ns, counts, bytes, event; in order of start on each rank.
        clocks_agree: whether start_ns can be compared across ranks (up to small offsets).

    Returns:
        Columns of PAIRED_SCHEMA, and the calls left without partner: group, kind, rank, calls.
    """
    placed = _placed_in_steps(calls)
    shifts = _shifts(placed, clocks_agree=clocks_agree)
    keyed = placed.join(shifts, on=[*KEYS, "rank"], how="left").with_columns(slot=pl.col("slot") + pl.col("shift"))
    numbered = _numbered(keyed)
    size = numbered.group_by("group").agg(members=pl.col("rank").n_unique())
    whole = (
        numbered.filter(pl.col("k").is_not_null())
        .group_by(*KEYS, "slot", "k")
        .agg(present=pl.len(), first=pl.col("start_ns").min(), counts=pl.col("counts").all())
        .join(size, on="group")
        .filter(pl.col("present") == pl.col("members"), pl.col("members") > 1)
        .sort(*KEYS, "slot", "k")
        .with_columns(call=pl.int_range(pl.len(), dtype=pl.UInt32).over(*KEYS))
        .select(*KEYS, "slot", "k", "call", "counts")
    )
    paired = (
        numbered.drop("counts")
        .join(whole, on=[*KEYS, "slot", "k"])
        .select(pl.col(name).cast(dtype) for name, dtype in PAIRED_SCHEMA.items())
        .sort(*KEYS, "call", "rank")
    )
    return paired, _left_over(calls, paired)


def _placed_in_steps(calls: pl.DataFrame) -> pl.DataFrame:
    """Number the steps of each sequence; calls outside of steps go with the step before them."""
    return calls.with_columns(
        slot=pl.col("step").cast(pl.Int64).forward_fill().over(*KEYS, "rank").fill_null(-1),
    )


def _shifts(placed: pl.DataFrame, *, clocks_agree: bool) -> pl.DataFrame:
    """By how many steps each rank's numbering lags behind that of the group's reference rank."""
    ends = (
        placed.group_by(*KEYS, "rank", "slot")
        .agg(end=(pl.col("start_ns") + pl.col("dur_ns")).first())
        .filter(pl.col("slot") >= 0)
        .sort("slot")
    )
    rows: list[tuple[str, str, int, int]] = []
    for (group, kind), own in ends.group_by(*KEYS, maintain_order=True):
        series = {int(rank): _dense(part) for (rank,), part in own.group_by("rank", maintain_order=True)}
        reference = max(sorted(series), key=lambda rank: len(series[rank]))
        for rank, steps in series.items():
            shift = 0 if rank == reference else _best_shift(series[reference], steps, clocks_agree=clocks_agree)
            rows.append((str(group), str(kind), rank, shift))
    schema = {"group": pl.String, "kind": pl.String, "rank": pl.Int32, "shift": pl.Int64}
    return (
        placed.select(*KEYS, "rank")
        .unique()
        .join(pl.DataFrame(rows, schema=schema, orient="row"), on=[*KEYS, "rank"], how="left")
        .with_columns(pl.col("shift").fill_null(0))
    )


def _dense(steps: pl.DataFrame) -> FloatArray:
    """End of the first call of step 0, 1, ...; NaN where a step has none."""
    slots = steps["slot"].to_numpy()
    dense = np.full(int(slots.max()) + 1, np.nan)
    dense[slots] = steps["end"].to_numpy()
    return dense


def _best_shift(reference: FloatArray, own: FloatArray, *, clocks_agree: bool) -> int:
    """The shift that makes step i of one rank end like step i + shift of the reference."""
    candidates = {0, len(reference) - len(own)}
    candidates.update(range(-SEARCHED_SHIFTS, SEARCHED_SHIFTS + 1))
    if clocks_agree:
        first = int(np.flatnonzero(~np.isnan(own))[0])
        nearest = int(np.nanargmin(np.abs(reference - own[first])))
        candidates.update(range(nearest - first - 2, nearest - first + 3))
    ranked = []
    for shift in candidates:
        apart = _apart(reference, own, shift)
        if len(apart) >= max(1, min(len(own), len(reference)) // 2):
            level = float(np.median(np.abs(apart)))
            spread = float(np.median(np.abs(apart - np.median(apart))))
            ranked.append((level, spread, abs(shift), shift))
    if not ranked:
        return 0
    if clocks_agree:
        best = min(ranked)
        period = float(np.nanmedian(np.diff(reference))) if len(reference) > 1 else np.inf
        if best[0] <= period / 4 or np.isnan(period):
            return best[3]
    if len(own) == len(reference):
        return 0
    return min((round(spread), size, shift) for _, spread, size, shift in ranked)[2]


def _apart(reference: FloatArray, own: FloatArray, shift: int) -> FloatArray:
    low, high = max(0, -shift), min(len(own), len(reference) - shift)
    if high <= low:
        return np.empty(0)
    difference: FloatArray = own[low:high] - reference[low + shift : high + shift]
    return difference[~np.isnan(difference)]


def _numbered(keyed: pl.DataFrame) -> pl.DataFrame:
    """Number calls within each step: from its start, or from its end in the step that a recording begins in.

    ``k`` is null where a step in the middle has unequal numbers of calls.
    """
    within = [*KEYS, "rank", "slot"]
    counted = keyed.with_columns(
        front=pl.int_range(pl.len(), dtype=pl.Int64).over(within),
        n=pl.len().over(within).cast(pl.Int64),
    ).with_columns(
        most=pl.col("n").max().over(*KEYS, "slot"),
        least=pl.col("n").min().over(*KEYS, "slot"),
        first=pl.col("slot").min().over(*KEYS, "rank"),
        last=pl.col("slot").max().over(*KEYS, "rank"),
    )
    own_is_cut = pl.col("n") < pl.col("most")
    begins = (own_is_cut & (pl.col("slot") == pl.col("first"))).any().over(*KEYS, "slot")
    ends = (own_is_cut & (pl.col("slot") == pl.col("last"))).any().over(*KEYS, "slot")
    return counted.with_columns(
        k=pl.when(pl.col("most") == pl.col("least"))
        .then("front")
        .when(ends)
        .then("front")
        .when(begins)
        .then(pl.col("front") - pl.col("n"))
    )


def _left_over(calls: pl.DataFrame, paired: pl.DataFrame) -> pl.DataFrame:
    return (
        calls.join(paired.select("event"), on="event", how="anti")
        .group_by(*KEYS, "rank")
        .agg(calls=pl.len())
        .sort(*KEYS, "rank")
    )
