"""The blocks of one step, as the finders hand them on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.tokens import IntArray
from traceanalyzer.words import PassKind


@dataclass(frozen=True)
class LayerPass:
    """A pass through the layers of a model within a step.

    Attributes:
        kind: one of PASS_KINDS.
        blocks: blocks of the pass.
    """

    kind: PassKind
    blocks: int


@dataclass(frozen=True, eq=False)
class Cut:
    """The blocks of one step.

    Attributes:
        block_of: for each event of the step its block, or -1.
        count: number of blocks, those of every pass.
        confidence: that they are right, 0 to 1; 0 without blocks.
        method: modules or pattern.
        pass_kinds: kind of each pass in order, where there is more than one.
        pass_of: for each block its pass; None where there is one pass.
    """

    block_of: IntArray
    count: int
    confidence: float
    method: str = "pattern"
    pass_kinds: tuple[PassKind, ...] = ()
    pass_of: IntArray | None = None

    @property
    def passes(self) -> tuple[LayerPass, ...]:
        """The passes in order; a step with blocks has one at minimum."""
        if self.pass_of is None:
            return (LayerPass("main", self.count),) if self.count else ()
        counts = np.bincount(self.pass_of, minlength=len(self.pass_kinds)).tolist()
        return tuple(LayerPass(kind, blocks) for kind, blocks in zip(self.pass_kinds, counts, strict=True))

    @property
    def layers(self) -> int:
        """Blocks of the main model, each layer once: micro-batches go through the same ones."""
        return max((one.blocks for one in self.passes if one.kind != "draft"), default=0)


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
