"""The blocks of one step, as the finders hand them on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.tokens import IntArray


@dataclass(frozen=True, eq=False)
class Cut:
    """The blocks of one step.

    Attributes:
        block_of: for each event of the step its block, or -1.
        count: number of blocks.
        confidence: that they are right, 0 to 1; 0 without blocks.
        method: modules or pattern.
    """

    block_of: IntArray
    count: int
    confidence: float
    method: str = "pattern"


def no_blocks(length: int) -> Cut:
    """Return the cut of a step that shows no blocks."""
    return Cut(np.full(length, -1, dtype=np.int64), 0, 0.0)


def cut_from_spans(length: int, starts: list[int], ends: list[int], confidence: float) -> Cut:
    """Return the cut whose block i holds the events from starts[i] up to, not including, ends[i]."""
    block_of = np.full(length, -1, dtype=np.int64)
    if starts:
        first, last = np.asarray(starts), np.asarray(ends)
        where = np.arange(length)
        index = np.searchsorted(first, where, side="right") - 1
        inside = (index >= 0) & (where < last[np.maximum(index, 0)])
        block_of[inside] = index[inside]
    return Cut(block_of, len(starts), confidence)
