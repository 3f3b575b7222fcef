"""Alignment of two kernel sequences that are nearly the same, in linear time."""

from __future__ import annotations

import numpy as np

from traceanalyzer.segment.tokens import IntArray

_REACH = 4
"""Kernels in a row that one sequence may have and the other not."""
_JUDGED_FROM = 64
"""Events after which sequences that differ in most are given up."""
_LEAST_MATCHED = 0.9
_LOST = 2
"""Events without a counterpart that a short sequence may have, too, beside one that has."""


def align(own: IntArray, other: IntArray) -> IntArray | None:
    """Return for each event of `own` its counterpart in `other`, or -1; None where they are not alike.

    Both are walked at once; where they differ, the shortest run that one of them has on top is skipped.
    """
    match = np.full(len(own), -1, dtype=np.int64)
    i = j = matched = 0
    while i < len(own) and j < len(other):
        same = _equal_run(own[i:], other[j:])
        match[i : i + same] = np.arange(j, j + same)
        matched, i, j = matched + same, i + same, j + same
        if i > _JUDGED_FROM and matched < 0.5 * i:
            return None
        mine, theirs = own[i : i + _REACH + 1].tolist(), other[j : j + _REACH + 1].tolist()
        if mine and theirs:
            skip = _skip(mine, theirs)
            i, j = i + skip[0], j + skip[1]
    return match if (match >= 0).sum() >= min(_LEAST_MATCHED * len(own), max(len(own) - _LOST, 1)) else None


def _equal_run(own: IntArray, other: IntArray) -> int:
    """Number of events at the start that both have; looked for in stretches that grow."""
    at, stretch = 0, 64
    limit = min(len(own), len(other))
    while at < limit:
        stop = min(at + stretch, limit)
        differs = own[at:stop] != other[at:stop]
        first = int(differs.argmax())
        if differs[first]:
            return at + first
        at, stretch = stop, 2 * stretch
    return limit


def _skip(mine: list[int], theirs: list[int]) -> tuple[int, int]:
    """How many events to leave out of each where they differ: the fewest of one, or one of both."""
    for reach in range(1, _REACH + 1):
        if reach < len(theirs) and theirs[reach] == mine[0]:
            return 0, reach
        if reach < len(mine) and mine[reach] == theirs[0]:
            return reach, 0
        if reach == 1 and mine[1:2] == theirs[1:2] != []:
            return 1, 1
    return 1, 1


def begins(own: IntArray, other: IntArray) -> bool:
    """Return whether a sequence is, but for a few kernels, the beginning of another and stops before its end."""
    if not len(own) or not len(other) or own[-1] == other[-1]:
        return 0 < len(own) < len(other) and np.array_equal(other[: len(own)], own)
    match = align(own, other)
    if match is None:
        return False
    matched = np.flatnonzero(match >= 0)
    return len(own) - 1 - int(matched[-1]) <= _REACH and int(match[matched[-1]]) < len(other) - 1


def carry_over(own: IntArray, other: IntArray, block_of: IntArray) -> IntArray | None:
    """Return the blocks of `own`, taken from its counterparts in `other`; None where they are not alike.

    An event without a counterpart goes with the one before it.
    """
    match = align(own, other)
    if match is None:
        return None
    known = np.where(match >= 0, np.arange(len(own)), -1)
    nearest = np.maximum.accumulate(known)
    return np.where(nearest >= 0, block_of[match[np.maximum(nearest, 0)]], -1).astype(np.int64)
