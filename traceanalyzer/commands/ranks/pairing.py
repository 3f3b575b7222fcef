"""The k-th collective of a group on every rank is one call: how calls are matched across ranks.

Calls are counted within steps, so that an event the profiler lost shifts nothing beyond its step. Steps are matched by
the ends of their collectives, because recordings need not start in the same step on all ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from traceanalyzer.commands.ranks.result import PairedCall, UnpairedRow
from traceanalyzer.declare import frame_schema

FloatArray = npt.NDArray[np.float64]

SEARCHED_SHIFTS = 8
"""Steps by which recordings may start apart, beyond what their clocks tell; chosen, not fitted."""

SLACK_NS = 300
"""Variation of ends that means nothing; chosen, not fitted."""

PAIRED_SCHEMA = frame_schema(PairedCall)
"""One row per call and rank; every call has a row for each rank of its group that is at hand."""


def pair(calls: pl.DataFrame, *, clocks_agree: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pair the calls of collectives across ranks.

    Args:
        calls: group, kind, rank, step, start_ns, dur_ns, counts, bytes, event; in order of start on each rank.
        clocks_agree: whether start_ns can be compared across ranks (up to small offsets).

    Returns:
        Columns of ``PairedCall``, and the calls left without a partner, in columns of ``UnpairedRow``.
    """
    if calls.is_empty():
        return pl.DataFrame(schema=PAIRED_SCHEMA), pl.DataFrame(schema=frame_schema(UnpairedRow))
    # A series is one kind of collective of one group; a number for it keeps the windows below cheap.
    series = calls.select("group", "kind").unique().sort("group", "kind").with_row_index("series")
    placed = _placed_in_steps(calls.join(series, on=["group", "kind"]).sort("rank", "start_ns").drop("group", "kind"))
    # Recordings may start in different steps: bring each rank's steps to the numbers of the reference rank.
    shifts = _shifts(placed, clocks_agree=clocks_agree)
    keyed = placed.join(shifts, on=["series", "rank"], how="left").with_columns(
        slot=pl.col("slot") + pl.col("shift").fill_null(0)
    )
    numbered = _numbered(keyed)
    # A call is whole when every rank of its series has it; the others stay without a partner.
    size = numbered.group_by("series").agg(members=pl.col("rank").n_unique())
    whole = (
        numbered.filter(pl.col("k").is_not_null())
        .group_by("series", "slot", "k")
        .agg(present=pl.len(), counts=pl.col("counts").all())
        .join(size, on="series")
        .filter(pl.col("present") == pl.col("members"), pl.col("members") > 1)
        .sort("series", "slot", "k")
        .with_row_index("call")
        .select("series", "slot", "k", "call", "counts")
    )
    paired = (
        numbered.drop("counts")
        .join(whole, on=["series", "slot", "k"])
        .sort("call", "rank")
        .join(series, on="series", maintain_order="left")
        .select(pl.col(name).cast(dtype) for name, dtype in PAIRED_SCHEMA.items())
    )
    left_over = (
        placed.join(paired.select("event"), on="event", how="anti")
        .group_by("series", "rank")
        .agg(calls=pl.len())
        .join(series, on="series")
        .select("group", "kind", "rank", "calls")
        .sort("group", "kind", "rank")
    )
    return paired, left_over


def _placed_in_steps(calls: pl.DataFrame) -> pl.DataFrame:
    """Number the steps of each sequence; calls outside of steps go with the step before them."""
    return calls.with_columns(
        slot=pl.col("step").cast(pl.Int64).forward_fill().over("series", "rank").fill_null(-1),
    )


def _shifts(placed: pl.DataFrame, *, clocks_agree: bool) -> pl.DataFrame:
    """By how many steps each rank's numbering lags behind that of the group's reference rank."""
    ends = (
        placed.group_by("series", "rank", "slot")
        .agg(end=(pl.col("start_ns") + pl.col("dur_ns")).first())
        .filter(pl.col("slot") >= 0)
        .sort("slot")
    )
    rows: list[tuple[int, int, int]] = []
    for (number,), own in ends.group_by("series", maintain_order=True):
        steps_of = {int(rank): _dense(part) for (rank,), part in own.group_by("rank", maintain_order=True)}
        reference = max(sorted(steps_of), key=lambda rank: len(steps_of[rank]))
        for rank, steps in steps_of.items():
            shift = 0 if rank == reference else _best_shift(steps_of[reference], steps, clocks_agree=clocks_agree)
            rows.append((int(number), rank, shift))
    return pl.DataFrame(rows, schema={"series": pl.UInt32, "rank": pl.Int32, "shift": pl.Int64}, orient="row")


def _dense(steps: pl.DataFrame) -> FloatArray:
    """End of the first call of step 0, 1, ...; NaN where a step has none."""
    slots = steps["slot"].to_numpy()
    dense = np.full(int(slots.max()) + 1, np.nan)
    dense[slots] = steps["end"].to_numpy()
    return dense


class ShiftFit(NamedTuple):
    """How well a shift of one rank's steps fits; smaller is better, in this order.

    Attributes:
        spread: mean distance of the steps' differences from their median, ns: how unlike the steps vary.
        level: size of that median, ns: how far apart the clocks would be.
        size: steps shifted.
        shift: the shift.
    """

    spread: float
    level: float
    size: int
    shift: int


def _best_shift(reference: FloatArray, own: FloatArray, *, clocks_agree: bool) -> int:
    """The shift that makes step i of one rank end like step i + shift of the reference."""
    # Recordings may begin together, end together, or a few steps apart; clocks that agree tell about where.
    candidates = {0, len(reference) - len(own)}
    candidates.update(range(-SEARCHED_SHIFTS, SEARCHED_SHIFTS + 1))
    if clocks_agree:
        first = int(np.flatnonzero(~np.isnan(own))[0])
        nearest = int(np.nanargmin(np.abs(reference - own[first])))
        candidates.update(range(nearest - first - 2, nearest - first + 3))
    # A shift that leaves less than 60 % of the shorter recording in common is not looked at (chosen, not fitted).
    least = max(1, -(-6 * min(len(own), len(reference)) // 10))
    fits = []
    for shift in candidates:
        apart = _apart(reference, own, shift)
        if len(apart) >= least:
            middle = float(np.median(apart))
            fits.append(ShiftFit(float(np.mean(np.abs(apart - middle))), abs(middle), abs(shift), shift))
    if not fits:
        return 0
    # Steps vary in length: the right shift is the one under which they vary alike, whatever the clocks say.
    limit = 2 * min(fits).spread + SLACK_NS
    alike = [fit for fit in fits if fit.spread <= limit]
    best = min(alike, key=lambda fit: (fit.level, fit.size, fit.shift))
    # Steps of equal length fit under every shift: then clocks decide, where they are surely less than a step apart.
    period = float(np.nanmedian(np.diff(reference))) if len(reference) > 1 else np.nan
    if len(alike) == 1 or (clocks_agree and (np.isnan(period) or best.level <= period / 4)):
        return best.shift
    return min(alike, key=lambda fit: (fit.size, fit.shift)).shift


def _apart(reference: FloatArray, own: FloatArray, shift: int) -> FloatArray:
    low, high = max(0, -shift), min(len(own), len(reference) - shift)
    if high <= low:
        return np.empty(0)
    difference: FloatArray = own[low:high] - reference[low + shift : high + shift]
    return difference[~np.isnan(difference)]


def _numbered(keyed: pl.DataFrame) -> pl.DataFrame:
    """Number calls within each step: from its start, or from its end in the step that a recording begins in.

    ``k`` is None where a step in the middle has unequal numbers of calls.
    """
    within = ["series", "rank", "slot"]
    counted = keyed.with_columns(
        front=pl.int_range(pl.len(), dtype=pl.Int64).over(within),
        n=pl.len().over(within).cast(pl.Int64),
    ).with_columns(
        most=pl.col("n").max().over("series", "slot"),
        least=pl.col("n").min().over("series", "slot"),
        first=pl.col("slot").min().over("series", "rank"),
        last=pl.col("slot").max().over("series", "rank"),
    )
    own_is_cut = pl.col("n") < pl.col("most")
    begins = (own_is_cut & (pl.col("slot") == pl.col("first"))).any().over("series", "slot")
    ends = (own_is_cut & (pl.col("slot") == pl.col("last"))).any().over("series", "slot")
    return counted.with_columns(
        k=pl.when(pl.col("most") == pl.col("least"))
        .then("front")
        .when(ends)
        .then("front")
        .when(begins)
        .then(pl.col("front") - pl.col("n"))
    )
