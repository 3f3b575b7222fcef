"""What host threads do during given stretches of time, from nested host events."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceanalyzer.commands.idle.result import IdleHost
from traceanalyzer.declare import frame_schema
from traceanalyzer.nesting import nesting
from traceanalyzer.trace import Trace

HOST_CATEGORIES = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "hip_runtime")


def host_time(trace: Trace, gaps: pl.DataFrame) -> pl.DataFrame:
    """Split the host's part of each gap by what the launching thread did.

    Args:
        gaps: start_ns, host_ns, place and correlation (of the launch that ends the gap) of each gap.

    Returns:
        place, name, inside, total_ns, largest first. The innermost event that covers a moment gets it; ``inside`` is
        the innermost annotation around that event, None without one. Moments that no event covers are in a row
        without a name.
    """
    waits = gaps.filter(pl.col("host_ns") > 0).join(
        trace.launches.select("correlation", "pid", "tid").unique("correlation"), on="correlation", how="inner"
    )
    frames = [
        _thread_time(_thread_events(trace, pid, tid, part), part)
        for (pid, tid), part in waits.group_by("pid", "tid", maintain_order=True)
    ]
    if not frames:
        return pl.DataFrame(schema=frame_schema(IdleHost))
    return (
        pl.concat(frames)
        .group_by("place", "name", "inside")
        .agg(pl.col("total_ns").sum())
        # Names become text once per group: as text of every event they take most of the time.
        .with_columns(pl.col("name", "inside").cast(pl.String))
        .sort(["total_ns", "name", "inside", "place"], descending=[True, False, False, False], nulls_last=True)
    )


def _thread_events(trace: Trace, pid: object, tid: object, waits: pl.DataFrame) -> pl.DataFrame:
    """Host events of a thread that overlap the stretch from the first wait to the last."""
    first, last = waits["start_ns"].min(), (waits["start_ns"] + waits["host_ns"]).max()
    events = (
        trace.events_of(*HOST_CATEGORIES)
        .filter(
            pl.col("pid") == pid,
            pl.col("tid") == tid,
            pl.col("start_ns") < last,
            pl.col("start_ns") + pl.col("dur_ns") > first,
        )
        .select("cat", "name", "start_ns", "dur_ns", "index")
        .collect()
    )
    return events if _ordered(events) else events.sort("start_ns", -pl.col("dur_ns"), "index")


def _ordered(events: pl.DataFrame) -> bool:
    """Whether events are in order of start, outer ones first, as profilers write them: sorting takes far longer."""
    start, length, index = (pl.col(name).diff() for name in ("start_ns", "dur_ns", "index"))
    after = (start > 0) | ((start == 0) & ((length < 0) | ((length == 0) & (index > 0))))
    return bool(events.select(after.all()).item())


def _thread_time(events: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Split a thread's waits by its events, which are ordered by start; an event's own time is not its children's."""
    starts = events["start_ns"].to_numpy()
    parents, ends = nesting(starts, (events["start_ns"] + events["dur_ns"]).to_numpy())
    annotations = _annotation_around(parents, (events["cat"] == "user_annotation").to_numpy())
    names = events["name"]
    inside = names.gather(pl.Series(annotations).replace(-1, None))
    nested = parents >= 0
    parts = []
    for (place,), part in waits.sort("start_ns").group_by("place", maintain_order=True):
        whole = _waited_before(part, ends) - _waited_before(part, starts)
        covered = whole.copy()
        np.subtract.at(covered, parents[nested], whole[nested])
        rest = int(part["host_ns"].sum()) - int(covered.sum())
        frame = pl.DataFrame({"name": names, "inside": inside, "total_ns": covered})
        uncovered = pl.DataFrame({"name": [None], "inside": [None], "total_ns": [rest]}, schema=frame.schema)
        spent = pl.concat([frame, uncovered]).filter(pl.col("total_ns") > 0)
        parts.append(spent.select(pl.lit(place, dtype=pl.String).alias("place"), pl.all()))
    return pl.concat(parts)


def _waited_before(waits: pl.DataFrame, moments: np.ndarray) -> np.ndarray:
    """How much of the waits, sorted and disjoint, lies before each moment, in ns."""
    start, length = waits["start_ns"].to_numpy(), waits["host_ns"].to_numpy()
    before = np.concatenate([[0], np.cumsum(length)])
    at = np.searchsorted(start, moments, side="right")
    inside = np.where(at > 0, np.minimum(moments - start[np.maximum(at - 1, 0)], length[np.maximum(at - 1, 0)]), 0)
    return before[np.maximum(at - 1, 0)] * (at > 0) + inside


def _annotation_around(parents: np.ndarray, annotates: np.ndarray) -> np.ndarray:
    """Return for each event the innermost annotation among it and those around it, or -1."""
    around = np.where(annotates, np.arange(len(parents)), -1)
    above = np.where(annotates, -1, parents)
    while (searching := np.flatnonzero(above >= 0)).size:  # twice as far up at each turn
        up = above[searching]
        around[searching], above[searching] = around[up], above[up]
        above[around >= 0] = -1
    return around
