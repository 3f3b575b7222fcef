"""Durations and times of GPU events that cannot be true."""

from __future__ import annotations

import polars as pl

OVERLAP_NS = 50_000
"""Kernels of one stream overlap by a few microseconds with programmatic dependent launch; this is no such overlap."""

TYPICAL_RATIO = 10
"""How many times longer than the others of its name a kernel must be, for its duration to be called implausible."""

LONE_OVERLAP_NS = 1_000_000
LONE_COVERED = 3
"""What is asked instead of a kernel that is the only one of its name: overlap and kernels covered."""

DAY_NS = 86_400 * 10**9


LANE = ["device", "stream"]


def implausible_durations(events: pl.LazyFrame) -> pl.DataFrame:
    """Return GPU events that cover later ones of their own stream and cannot have run that long.

    A stream runs one kernel after the other. An event that reaches far into the following ones, and lasted many
    times as long as the others of its name, got its end from a late completion stamp: it is cut where the next event
    of the stream starts.

    Args:
        events: GPU events, columns of EVENT_SCHEMA; any order.

    Returns:
        Columns ``index``, ``name``, ``raw_ns`` and ``dur_ns`` (the cut duration), one row an event to be cut.
    """
    times = (
        events.select("index", pl.col("device").fill_null(-1), "stream", "start_ns", "dur_ns")
        .filter(pl.col("stream").is_not_null())
        .collect()
        .sort(*LANE, "start_ns", "index")
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    suspects = (
        times.with_columns(next_ns=pl.col("start_ns").shift(-1).over(LANE), row=pl.int_range(pl.len()))
        .filter(end - pl.col("next_ns") > OVERLAP_NS, pl.col("next_ns") > pl.col("start_ns"))
        .with_columns(end_ns=end)
    )
    if suspects.is_empty():
        return pl.DataFrame(schema={"index": pl.Int64, "name": pl.String, "raw_ns": pl.Int64, "dur_ns": pl.Int64})
    durations = events.select("index", pl.col("name").cast(pl.String), "dur_ns").collect()
    typical = durations.group_by("name").agg(typical_ns=pl.col("dur_ns").median(), peers=pl.len())
    judged = (
        suspects.join(durations.select("index", "name"), on="index")
        .join(typical, on="name", nulls_equal=True)
        .join(_covered(times, suspects), on="row")
    )
    unlike_peers = (pl.col("peers") > 1) & (pl.col("dur_ns") > TYPICAL_RATIO * pl.col("typical_ns"))
    overlap = pl.col("end_ns") - pl.col("next_ns")
    lone = (pl.col("peers") == 1) & (overlap > LONE_OVERLAP_NS) & (pl.col("covered") >= LONE_COVERED)
    return judged.filter(unlike_peers | lone).select(
        "index", "name", raw_ns="dur_ns", dur_ns=pl.col("next_ns") - pl.col("start_ns")
    )


def _covered(times: pl.DataFrame, suspects: pl.DataFrame) -> pl.DataFrame:
    """Count the events that start within each suspect, on its stream (columns ``row``, ``covered``)."""
    starts = times.select(*LANE, "start_ns", last=pl.int_range(pl.len())).sort("start_ns")
    ends = suspects.select(*LANE, "row", "end_ns").sort("end_ns")
    last = ends.join_asof(
        starts, left_on="end_ns", right_on="start_ns", by=LANE, strategy="backward", check_sortedness=False
    )
    return last.select("row", covered=pl.col("last") - pl.col("row"))


def stray_times(events: pl.LazyFrame, host: pl.LazyFrame) -> pl.DataFrame:
    """Return GPU events that cannot have started when they say (column ``index``).

    That is: at time zero, although host events start later (a kernel cannot precede its launch), or more than a day
    from where the trace is. Events far away are strays only where they are few: where a large part of the events
    stands apart, the file mixes clocks, and none of them can be called wrong.

    Args:
        events: GPU events.
        host: launches and other host events, which decide where the trace is when there are any.
    """
    starts = events.select("index", "start_ns").collect()
    host_middle, host_first = host.select(pl.col("start_ns").median(), first=pl.col("start_ns").min()).collect().row(0)
    at_zero = pl.col("start_ns") == 0 if host_first else pl.lit(False)
    middle: float | None = host_middle if host_middle is not None else starts["start_ns"].median()  # type: ignore[assignment]
    far = (pl.col("start_ns") - int(middle or 0)).abs() > DAY_NS
    stray = starts.filter(at_zero | far)
    few = stray.height * 20 <= starts.height or stray.height <= 2
    return (stray if few else stray.filter(at_zero)).select("index")
