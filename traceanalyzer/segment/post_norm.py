"""Encoders that norm after each half of a block (BERT): whose the norm between two blocks is.

L blocks with a norm before each half and a final norm make the same sequence as a norm of the embedding and L blocks
with a norm after each half. What lies around tells: token, position and segment tables that are summed before the
first norm, or a pooler (a product and a tanh) after the last one, where nothing is sampled. Without such a sign the
blocks stay as they were found.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np

from traceanalyzer.segment.cut import Cut, cut_from_spans
from traceanalyzer.segment.tokens import EMBED, GEMM, NORM, OTHER, SAMPLE, VIEW, IntArray, KernelVocabulary

LEAST_TABLES = 3
"""Tables that an encoder of pairs of texts sums: tokens, positions, segments. Decoders have at most two.
From the architectures (BERT), not fitted."""

_LAYER_NORM = re.compile(r"layer_?norm", re.IGNORECASE)
_EMBEDS = re.compile(r"triton_\w*_embedding_\w*layer_?norm")
_TANH = re.compile(r"tanh_kernel|aten::tanh_?$|^triton_\w+_fused_(addmm_)?tanh(_\d+)?$")


def closing_norms(tokens: IntArray, vocabulary: KernelVocabulary, cut: Cut) -> Cut:
    """Return the blocks with the norm that opens each moved to the end of the one before, if the step says so.

    The first norm is then the embedding's, and the final one closes the last block.

    Args:
        tokens: token of each event of the step.
        vocabulary: what the tokens are.
        cut: the blocks as found, each with its norm before it.
    """
    placed = np.flatnonzero(cut.block_of >= 0)
    if cut.count < 2 or not _in_a_row(placed, cut.block_of[placed]):
        return cut
    starts = placed[np.searchsorted(cut.block_of[placed], np.arange(cut.count))].tolist()
    if not all(_opens(tokens, vocabulary, start) for start in starts):
        return cut
    end = _last_end(tokens, vocabulary, starts, int(placed[-1]) + 1)
    if end is None or not _is_post_norm(tokens, vocabulary, starts[0], end):
        return cut
    moved = [start + 1 for start in starts]
    ends = [*moved[1:], end]
    moved[0] = _first_start(tokens, moved, ends)
    return replace(cut, block_of=cut_from_spans(len(tokens), moved, ends, cut.confidence).block_of)


def _in_a_row(placed: IntArray, blocks: IntArray) -> bool:
    """Whether the blocks follow one another with nothing between them."""
    return bool((np.diff(placed) == 1).all() and (np.diff(blocks) >= 0).all())


def _opens(tokens: IntArray, vocabulary: KernelVocabulary, at: int) -> bool:
    """Whether a layer norm of a single kernel stands here."""
    token = tokens[at]
    whole = vocabulary.classes[token] == NORM and not vocabulary.bare_norm[token]
    return bool(whole) and _LAYER_NORM.search(vocabulary.names[token]) is not None


def _last_end(tokens: IntArray, vocabulary: KernelVocabulary, starts: list[int], cut_end: int) -> int | None:
    """Where the last block ends with its norm: as the one before does, else with the norm where it was found to end."""
    before, last = starts[-2:]
    length = last - before
    alike = np.array_equal(tokens[before + 1 : last], tokens[last + 1 : last + length])
    closing = last + length if alike else cut_end
    return closing + 1 if closing < len(tokens) and _opens(tokens, vocabulary, closing) else None


def _first_start(tokens: IntArray, starts: list[int], ends: list[int]) -> int:
    """Where the first block starts: after the kernels that the second block lacks (a wider embedding, ALBERT)."""
    length = ends[1] - starts[1]
    start = ends[0] - length
    alike = start >= starts[0] and np.array_equal(tokens[start : ends[0]], tokens[starts[1] : ends[1]])
    return start if alike else starts[0]


def _is_post_norm(tokens: IntArray, vocabulary: KernelVocabulary, first: int, end: int) -> bool:
    if (vocabulary.classes[tokens[end:]] == SAMPLE).any():
        return False
    tables = _tables(tokens, vocabulary, first)
    embedded = tables > 0 or _EMBEDS.search(vocabulary.names[tokens[first]]) is not None
    return tables >= LEAST_TABLES or (embedded and has_pooler(tokens[end:], vocabulary))


def _tables(tokens: IntArray, vocabulary: KernelVocabulary, norm: int) -> int:
    """Number of lookups whose results are summed right before a norm: one more than the additions, at most."""
    low = norm
    while low > 0 and vocabulary.classes[tokens[low - 1]] in (EMBED, OTHER, VIEW):
        low -= 1
    lookups = np.flatnonzero(vocabulary.classes[tokens[low:norm]] == EMBED)
    if not len(lookups):
        return 0
    sums = int(vocabulary.adds[tokens[low + int(lookups[0]) : norm]].sum())
    return min(len(lookups), sums + 1)


def has_pooler(behind: IntArray, vocabulary: KernelVocabulary) -> bool:
    """Whether a product directly followed by a tanh is among the kernels after a model's last norm."""
    work = behind[(vocabulary.classes[behind] != VIEW) & ~vocabulary.helpers[behind]].tolist()
    return any(
        vocabulary.classes[one] == GEMM and _TANH.search(vocabulary.names[two]) is not None
        for one, two in pairwise(work)
    )
