"""The blocks of a step that the recording stopped in: those of the step it is the beginning of, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.alignment import begins, carry_over
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.vocabulary import IntArray

MOST_TRIED = 8
"""Distinct kernel sequences that a cut-off step is compared with."""


@dataclass(frozen=True, eq=False)
class Peer:
    """A whole step that a cut-off one may be the beginning of.

    Attributes:
        tokens: token of each of its events.
        chain: the batch that each of them works for; null where there is only one.
        cut: its blocks.
    """

    tokens: IntArray
    chain: IntArray | None
    cut: Cut


def truncate(own: IntArray, chain: IntArray | None, peers: Iterable[Peer]) -> Cut | None:
    """Return the blocks of a cut-off step, or null where it is the beginning of no other step.

    Two batches at once are followed one by one: how their kernels mix differs from step to step.

    Args:
        own: token of each event of the step.
        chain: the batch that each works for; null where there is only one.
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
        block_of = _whole(own, peer) if chain is None or peer.chain is None else _by_batch(own, chain, peer)
        if block_of is not None:
            numbers, block_of = np.unique(block_of, return_inverse=True)
            block_of = block_of.astype(np.int64) - int(len(numbers) > 0 and numbers[0] < 0)
            return Cut(block_of, int(block_of.max(initial=-1)) + 1, peer.cut.confidence)
    return None


def is_beginning(own: IntArray, chain: IntArray | None, other: IntArray, other_chain: IntArray | None) -> bool:
    """Return whether a step is the beginning of another and stops before its end.

    Args:
        own, chain: token of each event of the step; the batch that each works for, null where there is only one.
        other, other_chain: the same of the other step.
    """
    if chain is None or other_chain is None:
        return begins(own, other)
    numbers = np.unique(other_chain).tolist()
    pairs = [(own[chain == number], other[other_chain == number]) for number in numbers]
    ended = [np.array_equal(one, two) for one, two in pairs]
    empty = [not len(one) for one, _ in pairs]
    return not all(ended) and all(
        done or none or begins(one, two) for done, none, (one, two) in zip(ended, empty, pairs, strict=True)
    )


def _whole(own: IntArray, peer: Peer) -> IntArray | None:
    return carry_over(own, peer.tokens, peer.cut.block_of) if begins(own, peer.tokens) else None


def _by_batch(own: IntArray, chain: IntArray, peer: Peer) -> IntArray | None:
    """Blocks of each batch from the same one of the peer; one of the two may have got to its end."""
    assert peer.chain is not None
    if not is_beginning(own, chain, peer.tokens, peer.chain):
        return None
    block_of = np.full(len(own), -1, dtype=np.int64)
    for number in np.unique(chain).tolist():
        mine, theirs = chain == number, peer.chain == number
        blocks = carry_over(own[mine], peer.tokens[theirs], peer.cut.block_of[theirs])
        if blocks is None:
            return None
        block_of[mine] = blocks
    return block_of
