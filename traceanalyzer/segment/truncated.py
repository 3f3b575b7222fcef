"""The blocks of a step that the recording stopped in: those of the step it is the beginning of, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.alignment import begins, carry_over
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.tokens import IntArray

MOST_TRIED = 8
"""Distinct kernel sequences that a cut-off step is compared with; bounds the work. Chosen, not fitted."""


@dataclass(frozen=True, eq=False)
class Peer:
    """A whole step that a cut-off one may be the beginning of.

    Attributes:
        tokens: token of each of its events.
        group: the batch that each of them works for (0 where there is only one); -1 for a stranger's.
        cut: its blocks.
    """

    tokens: IntArray
    group: IntArray
    cut: Cut


def truncate(own: IntArray, group: IntArray, peers: Iterable[Peer]) -> Cut | None:
    """Return the blocks of a cut-off step, or None where it is the beginning of no other step.

    Two batches at once are followed one by one: how their kernels mix differs from step to step.

    Args:
        own: token of each event of the step.
        group: the batch that each works for; -1 for a stranger's.
        peers: steps it may be the beginning of, the likeliest first; a few of them are tried.
    """
    tried: set[bytes] = set()
    for peer in peers:
        key = peer.tokens.tobytes()
        if not peer.cut.count or key in tried:
            continue
        if len(tried) >= MOST_TRIED:
            return None
        tried.add(key)
        if is_beginning(own, group, peer.tokens, peer.group):
            block_of = _carried(own, group, peer)
            if block_of is not None:
                numbers, block_of = np.unique(block_of, return_inverse=True)
                block_of = block_of.astype(np.int64) - int(len(numbers) > 0 and numbers[0] < 0)
                kept = numbers[numbers >= 0]
                pass_of = None if peer.cut.pass_of is None else peer.cut.pass_of[kept]
                count = int(block_of.max(initial=-1)) + 1
                return Cut(block_of, count, peer.cut.confidence, pass_kinds=peer.cut.pass_kinds, pass_of=pass_of)
    return None


def is_beginning(own: IntArray, group: IntArray, other: IntArray, other_group: IntArray) -> bool:
    """Return whether a step is the beginning of another and stops before its end, strangers' kernels aside.

    Args:
        own, group: token of each event of the step; the batch that each works for, -1 for a stranger's.
        other, other_group: the same of the other step.
    """
    pairs = [(own[group == number], other[other_group == number]) for number in batches(other_group)]
    ended = [np.array_equal(one, two) for one, two in pairs]
    begun = [done or begins(one, two) for done, (one, two) in zip(ended, pairs, strict=True) if len(one)]
    return bool(begun) and all(begun) and not all(ended)


def batches(group: IntArray) -> list[int]:
    """The batches that the events of a step work for."""
    numbers: list[int] = np.unique(group[group >= 0]).tolist()
    return numbers


def _carried(own: IntArray, group: IntArray, peer: Peer) -> IntArray | None:
    """Blocks of each batch from the same one of the peer; a stranger's event goes with the one before it."""
    block_of = np.full(len(own), -1, dtype=np.int64)
    for number in batches(group):
        mine, theirs = group == number, peer.group == number
        blocks = carry_over(own[mine], peer.tokens[theirs], peer.cut.block_of[theirs])
        if blocks is None:
            return None
        block_of[mine] = blocks
    known = np.maximum.accumulate(np.where(group >= 0, np.arange(len(own)), -1))
    return np.where(known >= 0, block_of[np.maximum(known, 0)], -1).astype(np.int64)
