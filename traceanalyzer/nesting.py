"""Which event of a thread runs inside which."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def nesting(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each event of a thread its parent, or -1, and its end.

    The parent is the innermost earlier event that still runs at its start. A child that outlasts its parent, by clock
    rounding, ends with it.

    Args:
        starts: ns, ascending; of those that start at once the outer one first.
        ends: ns.
    """
    depths = _depths(starts, ends)
    parents = _last_above(depths)
    clipped = ends.copy()
    nested = parents >= 0
    outlasts = np.zeros(len(starts), dtype=bool)
    outlasts[nested] = ends[nested] > ends[parents[nested]]
    # Depths count on every event ending before those around it. Where one does not, its whole stretch, from one
    # outermost event to the next, is gone through event by event.
    borders = np.append(np.flatnonzero(depths == 0), len(starts))
    wrong = np.unique(np.searchsorted(borders, np.flatnonzero(outlasts), side="right") - 1)
    for first, last in zip(borders[wrong], borders[wrong + 1], strict=True):
        own, clipped[first:last] = _one_by_one(starts[first:last], ends[first:last])
        parents[first:last] = np.where(own >= 0, own + first, -1)
    return parents, clipped


def _depths(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Earlier events that still run at the start of each; events without length never do."""
    last = ends > starts
    before: np.ndarray = np.cumsum(last) - last
    return before - np.searchsorted(np.sort(ends[last]), starts, side="right")


def _last_above(depths: np.ndarray) -> np.ndarray:
    """For each event the last one before it that is one level further out, or -1."""
    parents = np.full(len(depths), -1, dtype=np.int64)
    order = np.argsort(depths, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depths[order])) + 1)
    for outer, inner in pairwise(levels):
        parents[inner] = outer[np.searchsorted(outer, inner) - 1]
    return parents


def _one_by_one(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by following the events in order: which are open depends on how the last one was clipped."""
    parents, clipped = [-1] * len(starts), ends.tolist()
    open_events: list[int] = []
    open_ends: list[int] = []
    for event, (start, end) in enumerate(zip(starts.tolist(), clipped, strict=True)):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
            open_events.pop()
        if open_ends:
            parents[event] = open_events[-1]
            if end > open_ends[-1]:
                clipped[event] = open_ends[-1]
        open_events.append(event)
        open_ends.append(clipped[event])
    return np.array(parents, dtype=np.int64), np.array(clipped, dtype=np.int64)


def nearest(parents: np.ndarray, wanted: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return for each of some events the innermost wanted one among it and those around it, or -1.

    Args:
        parents: of every event of the thread, as from `nesting`.
        wanted: of every event, whether it is one of those looked for.
        at: the events to start from; -1 for none.
    """
    place = at.copy()
    while (climbing := np.flatnonzero((place >= 0) & ~wanted[place])).size:
        place[climbing] = parents[place[climbing]]
    return place


def around(starts: np.ndarray, ends: np.ndarray, parents: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return for each moment the innermost event of the thread that runs then, or -1.

    Args:
        starts: ns, ascending, as given to `nesting`.
        ends, parents: as from `nesting`.
        moments: ns; an event runs from its start to its end, both included.
    """
    place = np.searchsorted(starts, moments, side="right") - 1
    while (ended := np.flatnonzero((place >= 0) & (ends[np.maximum(place, 0)] < moments))).size:
        place[ended] = parents[place[ended]]
    return place
