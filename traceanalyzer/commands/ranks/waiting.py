"""The time of a collective, split into transfer and waiting; who was late, and which kernel made it so.

A collective ends on all ranks together, and its kernel starts when its rank arrives. The rank that arrives last waits
for nobody: its time, the least over the ranks, is the transfer; what the others take beyond it is waiting.

Since a group's last call, all its ranks had the same work to do. What the late rank's kernels took longer
than the same kernels of the other ranks (median), kernel by kernel, explains its delay; what no kernel explains is
idle time: the host launched late.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from traceanalyzer.commands.ranks.result import CauseRow
from traceanalyzer.declare import frame_schema
from traceanalyzer.names.collectives import bus_factor

LATE_NS = 100
"""Waiting below this counts as none: it is about the resolution of profilers' clocks. Chosen, not fitted."""

EXPLAINED_CALLS = 1000
"""Calls of each group that are explained, those with the longest waits; chosen, not fitted."""

CAUSE_SCHEMA = frame_schema(CauseRow)


def split(paired: pl.DataFrame) -> pl.DataFrame:
    """Add to paired calls transfer_ns, wait_ns and ``late``: the last rank to arrive, None where all came together."""
    each = (
        paired.sort("call", "dur_ns", "rank")
        .group_by("call", maintain_order=True)
        .agg(transfer_ns=pl.col("dur_ns").first(), longest=pl.col("dur_ns").last(), last=pl.col("rank").first())
    )
    late = pl.when(pl.col("longest") - pl.col("transfer_ns") >= LATE_NS).then("last")
    return paired.join(each.select("call", "transfer_ns", late=late), on="call", maintain_order="left").with_columns(
        wait_ns=pl.col("dur_ns") - pl.col("transfer_ns")
    )


def totals(calls: pl.DataFrame) -> pl.DataFrame:
    """Sum calls by kind and group.

    Returns:
        kind, group, calls, transfer_ns, and per call once: known_bytes, known_ns (transfer of calls whose size is
        known), late_wait_ns (the longest wait of each call: what all ranks arriving together could save).
    """
    each = calls.group_by("call").agg(
        pl.col("kind", "group").first(),
        transfer_ns=pl.col("transfer_ns").first(),
        longest_ns=pl.col("wait_ns").max(),
        bytes=pl.col("bytes").max(),
        first=pl.col("start_ns").min(),
    )
    return (
        each.group_by("kind", "group")
        .agg(
            calls=pl.len().cast(pl.Int64),
            transfer_ns=pl.col("transfer_ns").sum(),
            late_wait_ns=pl.col("longest_ns").sum(),
            known_bytes=pl.col("bytes").sum(),
            known_ns=pl.col("transfer_ns").filter(pl.col("bytes").is_not_null()).sum(),
            first=pl.col("first").min(),
        )
        .sort("first", "kind", "group")
        .drop("first")
    )


def waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Waiting and late arrivals by kind, group and rank: wait_ns, late_calls, caused_ns.

    ``caused_ns`` is the longest wait of the calls that the rank was last in.
    """
    waited = calls.group_by("kind", "group", "rank").agg(wait_ns=pl.col("wait_ns").sum())
    each = (
        calls.filter(pl.col("late").is_not_null())
        .group_by("call")
        .agg(pl.col("kind", "group").first(), rank=pl.col("late").first(), longest_ns=pl.col("wait_ns").max())
    )
    late = each.group_by("kind", "group", "rank").agg(
        late_calls=pl.len().cast(pl.Int64), caused_ns=pl.col("longest_ns").sum()
    )
    return (
        waited.join(late, on=["kind", "group", "rank"], how="left")
        .with_columns(pl.col("late_calls", "caused_ns").fill_null(0))
        .sort("kind", "group", "rank")
    )


def bus_gbps(kind: str, group: str, known_bytes: int, known_ns: int) -> float | None:
    """Bus bandwidth in GB/s over the calls whose message size is known: bytes x factor / transfer.

    The transfer is the least time over the ranks, launch overhead of the collective included.
    """
    factor = bus_factor(kind, len(json.loads(group)))
    if factor is None or not known_bytes or not known_ns:
        return None
    return known_bytes * factor / known_ns


def causes(events: pl.DataFrame, calls: pl.DataFrame, called: pl.DataFrame) -> pl.DataFrame:
    """Explain late arrivals: those of each group's EXPLAINED_CALLS longest waits.

    Args:
        events: rank_events.EVENT_COLUMNS with ``event``, its row number.
        calls: collectives (no point-to-point transfers) as ``split`` returns them.
        called: group, rank, start_ns, event of all collectives, those without a partner included: a call ends the
            work before it also where it could not be paired.

    Returns:
        Columns of ``CauseRow``, one row per group, late rank and kernel, largest first.
    """
    of_group = {group: own for (group,), own in called.group_by("group")}
    if calls.is_empty():
        return pl.DataFrame(schema=CAUSE_SCHEMA)
    parts = [
        _causes_in(events, own, of_group[str(group)]) for (group,), own in calls.group_by("group", maintain_order=True)
    ]
    order = ["wait_ns", "group", "rank", "name", "role"]
    return pl.concat(parts).sort(order, descending=[True, *[False] * 4], nulls_last=True)


def _causes_in(events: pl.DataFrame, calls: pl.DataFrame, called: pl.DataFrame) -> pl.DataFrame:
    """Explain the late arrivals of one group; arguments as for ``causes``."""
    # A turn is a call's place in the order of time, so that the work before each call has a number.
    ordered = (
        calls.group_by("call")
        .agg(
            at=pl.col("start_ns").min(),
            late=pl.col("late").first(),
            longest=pl.col("wait_ns").max(),
            typical=pl.col("wait_ns").filter(pl.col("rank") != pl.col("late")).median(),
        )
        .sort("at", "call")
        .with_row_index("turn")
    )
    late = (
        ordered.filter(pl.col("late").is_not_null())
        .sort("longest", "turn", descending=[True, False])
        .head(EXPLAINED_CALLS)
    )
    if late.is_empty():
        return pl.DataFrame(schema=CAUSE_SCHEMA)
    turns = calls.join(ordered.select("call", "turn"), on="call").select("event", "turn")
    work = _work_before(events, called.join(turns, on="event", how="left"), late["turn"])
    return (
        _largest_causes(_compared(work, late.select("turn", "late")), late)
        .join(late.select("turn", "longest"), on="turn")
        .group_by("rank", "name", "role")
        .agg(
            calls=pl.len().cast(pl.Int64),
            extra_ns=pl.col("extra_ns").sum().round().cast(pl.Int64),
            own_ns=pl.when(pl.col("own_ns").count() > 0).then(pl.col("own_ns").sum()),
            others_ns=pl.when(pl.col("others_ns").count() > 0).then(pl.col("others_ns").sum()),
            wait_ns=pl.col("longest").sum(),
        )
        .with_columns(group=pl.lit(calls["group"][0]))
        .select(pl.col(name).cast(dtype) for name, dtype in CAUSE_SCHEMA.items())
    )


def _largest_causes(compared: pl.DataFrame, late: pl.DataFrame) -> pl.DataFrame:
    """Return the largest cause of each late arrival that has one: a kernel, or idle time where no kernel explains it.

    Args:
        compared: the late ranks' kernels, as ``_compared`` returns them.
        late: turn, late (the rank), typical (median wait of the others).
    """
    by_name = (
        compared.group_by("turn", "rank", "name", "role")
        .agg(
            extra_ns=pl.col("extra_ns").sum(),
            own_ns=pl.col("dur_ns").sum(),
            others_ns=pl.col("others_ns").sum(),
        )
        .with_columns(pl.col("name", "role").cast(pl.String))
    )
    explained = by_name.group_by("turn").agg(explained=pl.col("extra_ns").sum())
    idle = late.join(explained, on="turn", how="left").select(
        "turn",
        rank="late",
        name=pl.lit(None, dtype=pl.String),
        role=pl.lit(None, dtype=pl.String),
        extra_ns=pl.col("typical") - pl.col("explained").fill_null(0),
        own_ns=pl.lit(None, dtype=pl.Int64),
        others_ns=pl.lit(None, dtype=pl.Float64),
    )
    return (
        pl.concat([by_name, idle], how="vertical_relaxed")
        .sort("extra_ns", "name", "role", descending=[True, False, False], nulls_last=True)
        .group_by("turn", maintain_order=True)
        .first()
        .filter(pl.col("extra_ns") >= LATE_NS)
    )


def _work_before(events: pl.DataFrame, called: pl.DataFrame, turns: pl.Series) -> pl.DataFrame:
    """The events of the group's ranks that run before one of the turns, each with the turn it runs before.

    Args:
        called: rank, start_ns, event, turn of the group's calls; the turn is None where a call was not paired.
    """
    parts = []
    marks = {rank: part for (rank,), part in called.sort("start_ns").group_by("rank", maintain_order=True)}
    own = events.filter(pl.col("rank").is_in(called["rank"].unique().implode()))
    for (rank,), part in own.group_by("rank", maintain_order=True):
        following = np.searchsorted(marks[rank]["start_ns"].to_numpy(), part["start_ns"].to_numpy(), side="left")
        ends = pl.Series(following, dtype=pl.Int64)
        turn = marks[rank]["turn"].gather(ends.replace(marks[rank].height, None))
        parts.append(part.with_columns(turn.alias("turn")).filter(pl.col("turn").is_in(turns.implode())))
    return (
        pl.concat(parts)
        .join(called.select("event"), on="event", how="anti")
        .select("rank", "start_ns", "dur_ns", "name", "role", "turn")
    )


def _compared(work: pl.DataFrame, late: pl.DataFrame) -> pl.DataFrame:
    """The late ranks' kernels beside the median of the same kernels on the other ranks.

    Kernels of one name are counted back from the call, because recordings need not begin at the same kernel.
    """
    numbered = work.join(late, on="turn").with_columns(
        k=pl.int_range(pl.len()).reverse().over("turn", "rank", "name"),
    )
    own = numbered.filter(pl.col("rank") == pl.col("late"))
    others = (
        numbered.filter(pl.col("rank") != pl.col("late"))
        .group_by("turn", "name", "k")
        .agg(others_ns=pl.col("dur_ns").median())
    )
    return own.join(others, on=["turn", "name", "k"]).with_columns(extra_ns=pl.col("dur_ns") - pl.col("others_ns"))
