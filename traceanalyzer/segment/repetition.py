"""Blocks without a kernel that is known to mix tokens: from the repetition of the sequence alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from traceanalyzer.segment.block_borders import StepLayout, matching_end
from traceanalyzer.segment.confidence import rate
from traceanalyzer.segment.cut import Cut, cut_from_spans, no_blocks
from traceanalyzer.segment.tokens import COMM, EXPERT, GEMM, NORM, POSITION, ROUTE, IntArray, KernelVocabulary

_LEAST_SIMILAR = 0.75
"""Share of their distinct kernels that neighbouring blocks must have in common. Chosen, not fitted."""
_LARGEST_LOOK_BACK = 4096
"""Kernels before an anchor that its block may start at; bounds the work. Chosen, not fitted."""
_PRODUCT_WEIGHT = 4.0
"""Votes of a matrix product on the number of blocks; other kernels have one. Chosen, not fitted."""
_WIDEST_GAP = 3
"""Gap between anchors, in median gaps, above which nothing repeats. Chosen, not fitted."""
_LEAST_AGREEING = 0.8
"""Share of blocks that must have the same kernel at a place for it to belong to them. Chosen, not fitted."""
_OF_LAYERS = (NORM, EXPERT, ROUTE, COMM, POSITION)
"""Classes of which a layer has some, whatever mixes its tokens."""
_WITHOUT_ANCHORS = 0.7
"""Factor on the rating of blocks that no mixer vouches for. Chosen, not fitted."""


def find_repetition(tokens: IntArray, vocabulary: KernelVocabulary) -> Cut:
    """Cut a step by its repetition; no blocks where it has none worth the name.

    The count of blocks is the number of occurrences that most kernels share. One pass over the distinct tokens
    finds it; nothing is searched.
    """
    anchors = _anchors(tokens, vocabulary) if _may_be_layers(tokens, vocabulary) else None
    if anchors is None:
        return no_blocks(len(tokens))
    layout = StepLayout.of(tokens, vocabulary)
    starts = _starts(layout, anchors)
    peers = list(pairwise(starts))[-3:]
    ends = [*starts[1:], matching_end(layout, starts[-1], peers)]
    if not _alike(tokens, starts, ends):
        return no_blocks(len(tokens))
    cut = cut_from_spans(len(tokens), starts, ends, 1.0)
    return Cut(cut.block_of, cut.count, round(_WITHOUT_ANCHORS * rate(tokens, starts, ends, 1.0, 0.5), 3))


def _may_be_layers(tokens: IntArray, vocabulary: KernelVocabulary) -> bool:
    """Whether anything of a layer but products shows, or anything unknown: `evidence` takes blocks without it back.

    A loop of products has up to as many of them as kernels, which takes long to compare.
    """
    known = np.isin(vocabulary.classes[tokens], _OF_LAYERS)
    return bool((known | vocabulary.sorts[tokens] | vocabulary.unknown[tokens]).any())


def _anchors(tokens: IntArray, vocabulary: KernelVocabulary) -> IntArray | None:
    """Positions of the kernel that stands for the blocks, or None without a repetition."""
    distinct, first, counts = np.unique(tokens, return_index=True, return_counts=True)
    repeated = counts >= 2
    if repeated.sum() < 2:
        return None
    # Kernels vote on the number of blocks with how often they occur; support[n] holds the votes for n blocks.
    weight = np.where(np.isin(vocabulary.classes[distinct], (GEMM, EXPERT)), _PRODUCT_WEIGHT, 1.0)
    support = np.bincount(counts[repeated], weights=weight[repeated])
    sharing = np.bincount(counts[repeated])
    largest = int(support.argmax())
    if sharing[largest] < 2 or largest < 2:
        return None
    members = np.flatnonzero(counts == largest)
    products = members[np.isin(vocabulary.classes[distinct[members]], (GEMM, EXPERT))]
    if len(products) == 0:
        return None
    # The earliest product that occurs so often marks the blocks: once per block, at gaps that are about even.
    token = distinct[products[np.argmin(first[products])]]
    where = np.flatnonzero(tokens == token)
    gaps = np.diff(where)
    if gaps.min() < 2 or gaps.max() > _WIDEST_GAP * np.median(gaps):
        return None
    return where


def _starts(layout: StepLayout, anchors: IntArray) -> list[int]:
    """Step back from the anchors as long as they all see the same kernel; stop before a collective."""
    tokens, classes = layout.tokens, layout.classes
    room = min(int(anchors[0]), int(np.diff(anchors).min()) - 1, _LARGEST_LOOK_BACK)
    # tokens[anchors - step] is the kernel that many places ahead in every block [blocks]; a norm is the best start.
    back, norm_at = 0, None
    for step in range(1, room + 1):
        seen = tokens[anchors - step]
        norms = bool((classes[anchors - step] == NORM).all())
        if not norms and not (seen[0] == seen[-1] and np.mean(seen == seen[-1]) > _LEAST_AGREEING):
            break
        back = step
        norm_at = step if norms else norm_at
    if norm_at is not None:
        back = norm_at
    while back and classes[anchors[0] - back] == COMM:
        back -= 1
    return [int(position) - back for position in anchors]


def _alike(tokens: IntArray, starts: list[int], ends: list[int]) -> bool:
    """Whether consecutive blocks have mostly the same kernels, all of them."""
    good = 0
    pairs = list(zip(starts, ends, strict=True))
    for (a, b), (c, d) in pairwise(pairs):
        one, two = np.sort(tokens[a:b]), np.sort(tokens[c:d])
        common = len(np.intersect1d(one, two))
        good += common >= _LEAST_SIMILAR * len(np.union1d(one, two))
    return good * 4 >= 3 * (len(pairs) - 1)
