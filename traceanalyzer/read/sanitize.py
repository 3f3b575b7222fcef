"""Durations and times of GPU events that cannot be true."""

from __future__ import annotations

import polars as pl

OVERLAP_NS = 50_000
"""Kernels of one stream overlap by a few µs with programmatic dependent launch; this is not such an overlap."""

TYPICAL_RATIO = 10
"""How many times longer than the others of its name a kernel must be, for its duration to be called implausible."""

LONE_OVERLAP_NS = 1_000_000
LONE_COVERED = 3
"""What is asked instead of a kernel that is the only one of its name: overlap and kernels covered."""

DAY_NS = 86_400 * 10**9

LANE = ["device", "stream"]
"""What tells the streams of a trace apart; a missing device counts as one."""


def implausible_durations(events: pl.LazyFrame) -> pl.DataFrame:
    """Return GPU events that cover later ones of their own stream and cannot have run that long.

    A stream runs one kernel after the other. An event that reaches far into the following ones, and lasted many
    times as long as the others of its name, got its end from a late completion stamp: it is cut where the next event
    of the stream starts.

    Args:
        events: GPU events, columns of EVENT_SCHEMA; any order.

    Returns:
        Columns ``index``, ``name``, ``raw_ns`` and ``dur_ns`` (the cut duration), one row per event to be cut.
    """
    named = events.with_columns(pl.col("name").cast(pl.String), pl.col("device").fill_null(-1))
    on_stream = named.filter(pl.col("stream").is_not_null())
    long = on_stream.filter(pl.col("dur_ns") > OVERLAP_NS).select("index", "name", *LANE, "start_ns", "dur_ns")
    suspects = _overlapping(long.collect(engine="streaming"), on_stream)
    if suspects.is_empty():
        return pl.DataFrame(schema={"index": pl.Int64, "name": pl.String, "raw_ns": pl.Int64, "dur_ns": pl.Int64})
    peers = named.join(suspects.lazy().select("name").unique(), on="name", how="semi", nulls_equal=True)
    typical = peers.group_by("name").agg(typical_ns=pl.col("dur_ns").median(), peers=pl.len()).collect()
    judged = suspects.join(typical, on="name", nulls_equal=True)
    unlike_peers = (pl.col("peers") > 1) & (pl.col("dur_ns") > TYPICAL_RATIO * pl.col("typical_ns"))
    lone = (pl.col("peers") == 1) & (pl.col("overlap_ns") > LONE_OVERLAP_NS) & (pl.col("covered") >= LONE_COVERED)
    return judged.filter(unlike_peers | lone).select(
        "index", "name", raw_ns="dur_ns", dur_ns=pl.col("next_ns") - pl.col("start_ns")
    )


def _overlapping(long: pl.DataFrame, events: pl.LazyFrame) -> pl.DataFrame:
    """Return those of the long events that reach far into later ones of their stream.

    Only the starts of all events are held, and only those of streams that have a long event.

    Returns:
        The columns of ``long``, and ``next_ns`` (when the next event of the stream starts), ``covered`` (how many start
        before the end) and ``overlap_ns`` (time from the start of the next to the end).
    """
    lanes = long.select(LANE).unique()
    starts = (
        events.select(*LANE, "start_ns")
        .join(lanes.lazy(), on=LANE, how="semi")
        .collect(engine="streaming")
        .partition_by(LANE, as_dict=True, include_key=False)
    )
    by_lane = [_reaching(group, starts.pop(lane)["start_ns"].sort()) for lane, group in long.group_by(LANE)]
    reaching = pl.concat(by_lane) if by_lane else _reaching(long, pl.Series(dtype=pl.Int64))
    return reaching.filter(pl.col("overlap_ns") > OVERLAP_NS)


def _reaching(long: pl.DataFrame, starts: pl.Series) -> pl.DataFrame:
    """Say how far the long events of one stream reach into those that start later, given all its starts in order."""
    end = long["start_ns"] + long["dur_ns"]
    following = starts.search_sorted(long["start_ns"], side="right")
    after = starts.search_sorted(end, side="right")
    known = long.with_columns(following=following, covered=after.cast(pl.Int64) - following, end_ns=end)
    return (
        known.filter(pl.col("covered") > 0)
        .with_columns(next_ns=pl.lit(starts).gather(pl.col("following")))
        .with_columns(overlap_ns=pl.col("end_ns") - pl.col("next_ns"))
        .drop("following", "end_ns")
    )


def stray_times(events: pl.LazyFrame, host: pl.LazyFrame) -> pl.DataFrame:
    """Return GPU events that cannot have started when they say (column ``index``).

    That is: at time zero, although host events start later (a kernel cannot precede its launch), or more than a day
    from where the trace is. Events far away are strays only where they are few: where a large part of the events
    stands apart, the file mixes clocks, and none of them can be called wrong.

    Args:
        events: GPU events.
        host: launches and other host events, which decide where the trace is when there are any.
    """
    (first, last), (host_first, host_last) = _range(events), _range(host)
    at_zero = pl.col("start_ns") == 0 if host_first else pl.lit(False)
    known = [each for each in (first, last, host_first, host_last) if each is not None]
    if not known or (max(known) - min(known) <= DAY_NS and not (host_first and first == 0)):
        return pl.DataFrame(schema={"index": pl.Int64})  # as of nearly every trace, which is told without its starts
    starts = events.select("index", "start_ns").collect()
    host_middle = host.select(pl.col("start_ns").median()).collect().item()
    middle: float | None = host_middle if host_middle is not None else starts["start_ns"].median()  # type: ignore[assignment]
    far = (pl.col("start_ns") - int(middle or 0)).abs() > DAY_NS
    stray = starts.filter(at_zero | far)
    few = stray.height * 20 <= starts.height or stray.height <= 2
    return (stray if few else stray.filter(at_zero)).select("index")


def _range(events: pl.LazyFrame) -> tuple[int | None, int | None]:
    """Return the first and the last start."""
    start = pl.col("start_ns")
    return events.select(first=start.min(), last=start.max()).collect(engine="streaming").row(0)
