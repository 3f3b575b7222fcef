"""Streams: two that run whole layers at the same time are two batches, not one path through the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.tokens import COMM, EXPERT, GEMM, MIXER, NORM, ByteArray, IntArray, KernelVocabulary
from traceanalyzer.words import PassKind

_LEAST_OVERLAP = 0.3
"""Share of a stream's kernels that must run while the other stream's do; a path that hops has next to none.
Chosen, not fitted."""
_WORK = (NORM, GEMM, EXPERT, MIXER, COMM)
"""Kernels whose overlap counts. One batch computes while the other communicates, so collectives are among them."""


def chains(stream: IntArray, start: IntArray, dur: IntArray, classes: ByteArray) -> IntArray | None:
    """Return for each event of a step which batch it works for, or None where there is only one.

    The arguments hold one value for each event of the step, in order of start; times in ns.

    With dual-batch overlap every layer runs twice, on two streams at once. Both streams then hold norms, matrix
    products and mixers in about equal numbers, and run at the same time; a path that hops between streams, or a
    side stream with part of the work, does not.
    """
    numbers = np.unique(stream[classes == MIXER])
    if len(numbers) < 2:
        return None
    end = start + dur
    counts = {n: [int(((stream == n) & (classes == c)).sum()) for c in (NORM, GEMM, MIXER)] for n in numbers.tolist()}
    full = [n for n in numbers.tolist() if min(counts[n][1:]) > 0]
    if len(full) != 2:
        return None
    one, two = sorted(full, key=lambda n: (-int((stream == n).sum()), n))
    if min(counts[one][2], counts[two][2]) * 2 < max(counts[one][2], counts[two][2]):
        return None
    work = np.isin(classes, _WORK)
    first, second = work & (stream == one), work & (stream == two)
    if (
        _overlap(start[first], end[first], start[second], end[second]) < _LEAST_OVERLAP
        and _overlap(start[second], end[second], start[first], end[first]) < _LEAST_OVERLAP
    ):
        return None
    return np.where(stream == two, 1, 0).astype(np.int64)


def find_batches(tokens: IntArray, chain: IntArray, vocabulary: KernelVocabulary, known: frozenset[int]) -> Cut:
    """Find the blocks of each batch on its own; a layer's come one after the other, the first batch's first.

    What the longest has before and after its blocks is done for all: it surrounds the blocks of the others, too.

    Args:
        tokens: token of each event of the step.
        chain: its batch, from `chains`.
        vocabulary, known: see `find_blocks`.
    """
    numbers = np.unique(chain).tolist()
    where = [np.flatnonzero(chain == number) for number in numbers]
    first = find_blocks(tokens[where[0]], vocabulary, known)
    around = _around(where[0], first)
    cuts = [first, *(_inside(tokens, own, around, vocabulary, known) for own in where[1:])]
    even = len({cut.count for cut in cuts}) == 1
    keys = [
        (block, number) if even else (int(own[(cut.block_of == block).argmax()]), number)
        for number, (own, cut) in enumerate(zip(where, cuts, strict=True))
        for block in range(cut.count)
    ]
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    block_of = np.full(len(tokens), -1, dtype=np.int64)
    offset = 0
    for own, cut in zip(where, cuts, strict=True):
        inside = cut.block_of >= 0
        block_of[own[inside]] = rank[cut.block_of[inside] + offset]
        offset += cut.count
    pass_of = np.empty(len(keys), dtype=np.int64)
    pass_of[rank] = [number for _, number in keys]
    kinds: tuple[PassKind, ...] = tuple("micro_batch" for _ in cuts)
    whole = all(cut.count for cut in cuts)
    return Cut(
        block_of,
        len(keys),
        min(cut.confidence for cut in cuts),
        pass_kinds=kinds if whole else (),
        pass_of=pass_of if whole else None,
    )


def _around(where: IntArray, cut: Cut) -> tuple[IntArray, IntArray]:
    """Positions of a batch's events before its first block and after its last."""
    placed = np.flatnonzero(cut.block_of >= 0)
    if not len(placed):
        return where[:0], where[:0]
    return where[: placed[0]], where[placed[-1] + 1 :]


def _inside(
    tokens: IntArray,
    own: IntArray,
    around: tuple[IntArray, IntArray],
    vocabulary: KernelVocabulary,
    known: frozenset[int],
) -> Cut:
    """Blocks of a batch that runs between the start and the end of a step that are another's."""
    ahead, behind = around
    ahead = ahead if not len(ahead) or ahead[-1] < own[0] else ahead[:0]
    behind = behind if not len(behind) or behind[0] > own[-1] else behind[:0]
    cut = find_blocks(tokens[np.concatenate((ahead, own, behind))], vocabulary, known)
    return replace(cut, block_of=cut.block_of[len(ahead) : len(ahead) + len(own)])


def _overlap(start: IntArray, end: IntArray, other_start: IntArray, other_end: IntArray) -> float:
    """Share of kernels during whose middle one of the others runs; both ordered by start."""
    middle = (start + end) // 2
    at = np.searchsorted(other_start, middle, side="right") - 1
    running = (at >= 0) & (middle < np.maximum.accumulate(other_end)[np.maximum(at, 0)])
    return float(running.mean()) if len(running) else 0.0
