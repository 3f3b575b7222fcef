"""Begin and end events (phases B and E) -> complete events."""

from __future__ import annotations

import polars as pl

from traceanalyzer.read.event_schema import EVENT_SCHEMA


def join_pairs(events: pl.DataFrame) -> tuple[pl.DataFrame, int, int]:
    """Join every begin with its end: the next end on its thread at the same depth.

    Args:
        events: columns of EVENT_SCHEMA and ``ph`` (B or E).

    Returns:
        The complete events (the begin's columns, ``dur_ns`` up to the end), and how many begins and ends had no
        counterpart. Where the ends of a thread carry names, only equal names are joined.
    """
    thread = ["pid", "tid"]
    usable = events.filter(pl.col("start_ns").is_not_null()).sort("start_ns", "index")
    ends_named = (pl.col("name").is_not_null() | (pl.col("ph") == "B")).all().over(thread)
    usable = usable.with_columns(key=pl.when(ends_named).then(pl.col("name").cast(pl.String)))
    place = [*thread, "key"]
    begins = pl.col("ph") == "B"
    change = pl.when(begins).then(1).otherwise(-1)
    depth = change.cum_sum().over(place)
    levelled = usable.with_columns(level=pl.when(begins).then(depth).otherwise(depth + 1))
    at = [*place, "level"]
    following = {
        "end_ns": pl.col("start_ns").shift(-1).over(at),
        "end_ph": pl.col("ph").shift(-1).over(at),
    }
    joined = (
        levelled.with_columns(**following)
        .filter(begins, pl.col("end_ph") == "E")
        .with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
        .select(list(EVENT_SCHEMA))
    )
    all_begins = events.select((pl.col("ph") == "B").sum()).item()
    all_ends = events.height - all_begins
    return joined, all_begins - joined.height, all_ends - joined.height
