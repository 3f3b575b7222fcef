"""Steps that lost a few kernels follow a step that is the same but for them and that shows its blocks more clearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traceanalyzer.segment.alignment import align
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.tokens import BoolArray, IntArray
from traceanalyzer.segment.truncated import Peer, batches

_CLEAR = 0.9
"""Confidence of blocks that need nobody's advice."""
_CLEARER = 0.03
"""How much more certain another step must be to be followed."""
_LEAST_SHARED = 0.9
"""Share of the other step's kernels that must be there."""
_LOST = 3
"""Kernels that may be missing of a short step, too."""
_TRIED = 3
"""Steps of its length that a doubtful step is compared with."""
_ADVISORS = 256
"""Distinct steps that may be followed, the clearest ones; bounds the search in a trace of ever new sequences."""


def consult(steps: Sequence[Peer]) -> list[Cut]:
    """Return the blocks of each of some distinct steps, those of doubtful ones taken from a clearer one of their kind.

    The recording rarely loses the same kernel of every step.
    """
    clear = sorted((peer for peer in steps if peer.cut.count), key=lambda peer: -peer.cut.confidence)[:_ADVISORS]
    return [_advised(step, clear) if step.cut.confidence < _CLEAR else step.cut for step in steps]


def _advised(step: Peer, clear: list[Peer]) -> Cut:
    tried = 0
    for peer in clear:
        if peer.cut.confidence < step.cut.confidence + _CLEARER or tried >= _TRIED:
            break
        if not _about_as_long(step, peer):
            continue
        tried += 1
        block_of = _follow(step, peer)
        if block_of is not None:
            return replace(peer.cut, block_of=block_of)
    return step.cut


def _about_as_long(one: Peer, two: Peer) -> bool:
    shorter, longer = sorted((len(one.tokens), len(two.tokens)))
    return shorter >= min(_LEAST_SHARED * longer, longer - _LOST)


def _follow(step: Peer, peer: Peer) -> IntArray | None:
    """Blocks of a step by those of its counterparts in another; None where that leaves one of its kernels in doubt."""
    block_of = np.full(len(step.tokens), -1, dtype=np.int64)
    for number in batches(step.group):
        mine, theirs = step.group == number, peer.group == number
        if not theirs.any():
            return None
        match = align(step.tokens[mine], peer.tokens[theirs])
        if match is None or (match >= 0).sum() < min(_LEAST_SHARED * theirs.sum(), theirs.sum() - _LOST):
            return None
        blocks = _between_equals(match, peer.cut.block_of[theirs])
        if blocks is None:
            return None
        block_of[mine] = blocks
    strangers = np.flatnonzero(step.group < 0)
    block_of[strangers] = _last_known(block_of, step.group >= 0)[strangers]
    present = np.unique(block_of[block_of >= 0])
    return block_of if len(present) == peer.cut.count else None


def _between_equals(match: IntArray, other: IntArray) -> IntArray | None:
    """Blocks by counterparts; an event without one has the block of both its neighbours, or there is no answer."""
    known = match >= 0
    blocks = np.where(known, other[np.maximum(match, 0)], -1)
    before = _last_known(blocks, known)
    behind = _last_known(blocks[::-1], known[::-1])[::-1]
    if (before != behind)[~known].any():
        return None
    return np.where(known, blocks, before).astype(np.int64)


def _last_known(values: IntArray, known: BoolArray) -> IntArray:
    """The value at or before each place among the known ones; -1 ahead of the first."""
    at = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.where(at >= 0, values[np.maximum(at, 0)], -1).astype(np.int64)
