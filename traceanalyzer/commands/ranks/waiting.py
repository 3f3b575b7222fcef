"""The time of a collective, split into transfer and waiting, and who was late.

A collective ends on all ranks together, and its kernel starts when its rank arrives. The rank that arrives last waits
for nobody: its time, the least over the ranks, is the transfer; what the others take beyond it is waiting.
"""

from __future__ import annotations

import json

import polars as pl

from traceanalyzer.names.collectives import bus_factor

LATE_NS = 100
"""Waiting below this is the profiler's resolution: nobody was late."""


def split(paired: pl.DataFrame) -> pl.DataFrame:
    """Add transfer_ns, wait_ns and ``late`` (the rank that arrived last; None where all arrived together).

    Args:
        paired: columns of pairing.PAIRED_SCHEMA.
    """
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

    Args:
        calls: what ``split`` returns.

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
