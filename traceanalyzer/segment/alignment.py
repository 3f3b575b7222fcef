"""Alignment of two kernel sequences that are nearly the same, in linear time."""

from __future__ import annotations

import numpy as np

from traceanalyzer.segment.vocabulary import IntArray

_REACH = 4
"""Kernels in a row that one sequence may have and the other not."""
_LEAST_MATCHED = 0.9
_LOST = 2
"""Events without a counterpart that a short sequence may have, too."""


def align(own: IntArray, other: IntArray) -> IntArray | None:
    """Return for each event of `own` its counterpart in `other`, or -1; null where they are not alike.

    Both are walked at once; where they differ, the shortest run that one of them has on top is skipped.
    """
    limit = min(len(own), len(other))
    same = np.flatnonzero(own[:limit] != other[:limit])
    start = int(same[0]) if len(same) else limit
    match = np.full(len(own), -1, dtype=np.int64)
    match[:start] = np.arange(start)
    mine, theirs = own[start:].tolist(), other[start:].tolist()
    i = j = matched = 0
    while i < len(mine) and j < len(theirs):
        if mine[i] != theirs[j]:
            skip = _skip(mine, theirs, i, j)
            if skip is None:
                i, j = i + 1, j + 1
                continue
            i, j = i + skip[0], j + skip[1]
        match[start + i] = start + j
        matched += 1
        i, j = i + 1, j + 1
        if i > 64 and matched < 0.5 * i:
            return None
    return match if (match >= 0).sum() >= min(_LEAST_MATCHED * len(own), len(own) - _LOST) else None


def _skip(mine: list[int], theirs: list[int], i: int, j: int) -> tuple[int, int] | None:
    for reach in range(1, _REACH + 1):
        if j + reach < len(theirs) and theirs[j + reach] == mine[i]:
            return 0, reach
        if i + reach < len(mine) and mine[i + reach] == theirs[j]:
            return reach, 0
    return None


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
    """Return the blocks of `own`, taken from its counterparts in `other`; null where they are not alike.

    An event without a counterpart goes with the one before it.
    """
    match = align(own, other)
    if match is None:
        return None
    known = np.where(match >= 0, np.arange(len(own)), -1)
    nearest = np.maximum.accumulate(known)
    return np.where(nearest >= 0, block_of[match[np.maximum(nearest, 0)]], -1).astype(np.int64)
