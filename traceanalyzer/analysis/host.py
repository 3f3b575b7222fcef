"""What host threads do during given stretches of time, from nested host events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from traceanalyzer.trace import Trace

HOST_CATEGORIES = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "hip_runtime")
_SCHEMA = {"place": pl.String(), "name": pl.String(), "inside": pl.String(), "total_ns": pl.Int64()}


class HostTime:
    """The frame that ``host_time`` returns."""

    @staticmethod
    def empty() -> pl.DataFrame:
        """Return it without rows."""
        return pl.DataFrame(schema=_SCHEMA)


def host_time(trace: Trace, gaps: pl.DataFrame) -> pl.DataFrame:
    """Split the host's part of each gap by what the launching thread did.

    Args:
        trace: the trace.
        gaps: start_ns, host_ns, place and correlation (of the launch that ends the gap) of each gap.

    Returns:
        place, name, inside, total_ns, largest first. The innermost event that covers a moment gets it; ``inside`` is
        the innermost annotation around that event, null where there is none. Moments that no event covers are in a
        row without a name.
    """
    waits = gaps.filter(pl.col("host_ns") > 0).join(
        trace.launches.select("correlation", "pid", "tid").unique("correlation"), on="correlation", how="inner"
    )
    frames = [
        _thread_time(_thread_events(trace, pid, tid, part), part)
        for (pid, tid), part in waits.group_by("pid", "tid", maintain_order=True)
    ]
    if not frames:
        return HostTime.empty()
    return (
        pl.concat(frames)
        .group_by("place", "name", "inside")
        .agg(pl.col("total_ns").sum())
        .filter(pl.col("total_ns") > 0)
        .sort(["total_ns", "name"], descending=[True, False])
    )


def _thread_events(trace: Trace, pid: object, tid: object, waits: pl.DataFrame) -> pl.DataFrame:
    """Host events of a thread that overlap the stretch from the first wait to the last."""
    first, last = waits["start_ns"].min(), (waits["start_ns"] + waits["host_ns"]).max()
    return (
        trace.events.filter(
            pl.col("cat").cast(pl.String).is_in(HOST_CATEGORIES),
            pl.col("pid").cast(pl.String) == pid,
            pl.col("tid").cast(pl.String) == tid,
            pl.col("start_ns") < last,
            pl.col("start_ns") + pl.col("dur_ns") > first,
        )
        .select(pl.col("cat").cast(pl.String), pl.col("name").cast(pl.String), "start_ns", "dur_ns", "index")
        .sort("start_ns", -pl.col("dur_ns"), "index")
        .collect()
    )


def _thread_time(events: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    starts, ends, rows, annotations = _innermost(events)
    names = events["name"]
    parts = []
    for (place,), part in waits.sort("start_ns").group_by("place", maintain_order=True):
        covered = _waited_before(part, ends) - _waited_before(part, starts)
        frame = pl.DataFrame(
            {
                "place": pl.Series([place] * len(rows), dtype=pl.String),
                "name": names.gather(rows),
                "inside": names.gather(pl.Series(annotations, dtype=pl.Int64)),
                "total_ns": pl.Series(covered, dtype=pl.Int64),
            },
            schema=_SCHEMA,
        )
        rest = int(part["host_ns"].sum()) - int(covered.sum())
        parts += [frame, pl.DataFrame([(place, None, None, rest)], schema=_SCHEMA, orient="row")]
    return pl.concat(parts)


def _waited_before(waits: pl.DataFrame, moments: np.ndarray) -> np.ndarray:
    """How much of the waits, sorted and disjoint, lies before each moment, in ns."""
    start, length = waits["start_ns"].to_numpy(), waits["host_ns"].to_numpy()
    before = np.concatenate([[0], np.cumsum(length)])
    at = np.searchsorted(start, moments, side="right")
    inside = np.where(at > 0, np.minimum(moments - start[np.maximum(at - 1, 0)], length[np.maximum(at - 1, 0)]), 0)
    return before[np.maximum(at - 1, 0)] * (at > 0) + inside


def _innermost(events: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, list[int], list[int | None]]:
    """Cut a thread's nested events into stretches, each with the innermost event and annotation that cover it."""
    stretches = list(
        _stretches(
            events["start_ns"].to_list(),
            (events["start_ns"] + events["dur_ns"]).to_list(),
            (events["cat"] == "user_annotation").to_list(),
        )
    )
    starts = np.array([s[0] for s in stretches], dtype=np.int64)
    ends = np.array([s[1] for s in stretches], dtype=np.int64)
    return starts, ends, [s[2] for s in stretches], [s[3] for s in stretches]


def _stretches(
    starts: Sequence[int], ends: Sequence[int], annotates: Sequence[bool]
) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield (start, end, innermost event, innermost annotation) in order of time, for events sorted by start."""
    stack: list[tuple[int, int, int | None]] = []  # end, event, annotation around it
    now = 0
    for event, start in enumerate(starts):
        while stack and stack[-1][0] <= start:
            end, top, annotation = stack.pop()
            if end > now:
                yield now, end, top, annotation
                now = end
        if stack and start > now:
            yield now, start, stack[-1][1], stack[-1][2]
        now = max(now, start)
        around = event if annotates[event] else (stack[-1][2] if stack else None)
        # A child that outlasts its parent, by clock rounding, ends with it.
        stack.append((min(ends[event], stack[-1][0]) if stack else ends[event], event, around))
    while stack:
        end, top, annotation = stack.pop()
        if end > now:
            yield now, end, top, annotation
            now = end
