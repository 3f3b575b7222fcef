"""What lies around a border between blocks: feed-forward ends, norms made of many kernels, residual additions.

    ... gemm act gemm  add  copy pow mean rsqrt mul  gemm ...
                 ^F    ^            ^mark            the next block's first product
                       |    ^start of the unfused norm: its head is [copy, pow, mean]
                       the residual addition: it ends the block before

F is the end of the feed-forward, a mark the heart of a norm. A fused norm is its own head.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher

import numpy as np

from traceanalyzer.segment.tokens import (
    COMBINE,
    COMM,
    EMBED,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    OTHER,
    POSITION,
    ROUTE,
    SAMPLE,
    VIEW,
    ByteArray,
    IntArray,
    KernelVocabulary,
)

_LONGEST_STRAY = 4
"""Foreign kernels that may stand in a block before those that its peers have. Chosen, not fitted."""
_LONGEST_NORM = 64
"""Kernels that an unfused norm may consist of; bounds the look back from its heart. Chosen, not fitted."""
_TURNS_FROM = 3.0
_TURNS_SHARE = 0.5
"""An index kernel that occurs this often, or in this share of the mixers, is part of blocks. Chosen, not fitted."""


@dataclass(eq=False)
class StepLayout:
    """A step's kernels with the positions that borders are found by, each list in order of time.

    Attributes:
        tokens, classes: of each kernel, [kernels].
        vocabulary: what the tokens are.
        norms, gemms, samples: positions of norms, matrix products and sampling.
        ffn: positions of activations and of what routes, computes or combines experts.
        products: matrix products and what ends a feed-forward: combining experts, collectives.
        turns: positions that show where a pass through the model ends or begins.
        usual_head: tokens of a norm before its heart, where it is not fused.
    """

    tokens: IntArray
    vocabulary: KernelVocabulary
    classes: ByteArray
    norms: list[int]
    gemms: list[int]
    ffn: list[int]
    products: list[int]
    turns: list[int]
    samples: list[int]
    usual_head: tuple[int, ...] = field(default=())

    @classmethod
    def of(cls, tokens: IntArray, vocabulary: KernelVocabulary) -> StepLayout:
        """Index a step's events."""
        classes = vocabulary.classes[tokens]

        def at(*wanted: int) -> list[int]:
            positions: list[int] = np.flatnonzero(np.isin(classes, wanted)).tolist()
            return positions

        feeds = vocabulary.activates[tokens] | np.isin(classes, (EXPERT, COMBINE, ROUTE))
        return cls(
            tokens=tokens,
            vocabulary=vocabulary,
            classes=classes,
            norms=at(NORM),
            gemms=at(GEMM, EXPERT),
            ffn=np.flatnonzero(feeds).tolist(),
            products=at(GEMM, EXPERT, COMBINE, COMM),
            turns=_turns(tokens, classes),
            samples=at(SAMPLE),
        )

    @property
    def length(self) -> int:
        """Number of events in the step."""
        return len(self.tokens)

    def feed_forward_end(self, low: int, high: int) -> int | None:
        """Return the last kernel of the feed-forward between two positions, or None where none shows.

        The last activation or expert kernel that a norm follows (others belong to the next block's projections),
        then every product and collective up to that norm.
        """
        # What follows the last norm projects for the next block, even where an activation is fused into it.
        last_norm = bisect_left(self.norms, high) - 1
        if last_norm >= 0 and self.norms[last_norm] > low:
            high = self.norms[last_norm] + 1
        index = self._last_feed_forward(low, high)
        if index is None:
            return None
        last = self.ffn[index]
        following = bisect_right(self.norms, last)
        stop = self.norms[following] if following < len(self.norms) else high
        stop = min(stop, high)
        product = bisect_left(self.products, stop) - 1
        return max(last, self.products[product]) if product >= 0 and self.products[product] > last else last

    def open_feed_forward(self, low: int) -> int | None:
        """Return the last kernel of a feed-forward behind the last norm, or None where none shows.

        A trace of layers alone ends so: no final norm follows. What tells it from a model's head is an activation (or
        experts) between two products of the same pass:

            n qkv M o n up act down add            the residual addition is the last kernel
            n qkv M o n up act down n lm_head      this one has a final norm
        """
        if bisect_right(self.norms, low) >= len(self.norms) or self.feed_forward_end(low, self.length) is not None:
            return None
        last_norm = self.norms[-1]
        stop = self.first_turn(last_norm, self.length)
        active = [p for p in self.ffn[bisect_left(self.ffn, last_norm) :] if p < stop]
        products = [p for p in self.gemms[bisect_left(self.gemms, last_norm) :] if p < stop]
        if not active or not products or products[0] > active[0] or products[-1] < active[0]:
            return None
        return self._with_residual(max(products[-1], active[-1]), stop)

    def _with_residual(self, end: int, stop: int) -> int:
        """The last of the additions that follow a kernel at once."""
        while end + 1 < stop and (self.vocabulary.adds[self.tokens[end + 1]] or self.classes[end + 1] == VIEW):
            end += 1
        return end

    def _last_feed_forward(self, low: int, high: int) -> int | None:
        """The last feed-forward kernel before anything that ends the pass (a sampler's activation is none)."""
        turn = bisect_right(self.turns, low)
        while turn < len(self.turns) and self.turns[turn] < high:
            index = bisect_left(self.ffn, self.turns[turn]) - 1
            if index >= 0 and self.ffn[index] > low:
                return index
            turn += 1
        index = bisect_left(self.ffn, high) - 1
        return index if index >= 0 and self.ffn[index] > low else None

    def passes_between(self, low: int, high: int) -> bool:
        """Return whether a pass through the model ends between two positions (sampling, embedding)."""
        index = bisect_right(self.turns, low)
        return index < len(self.turns) and self.turns[index] < high

    def first_turn(self, low: int, high: int) -> int:
        """Return the first kernel between two positions that shows a pass's end or beginning; the upper without one."""
        index = bisect_right(self.turns, low)
        return self.turns[index] if index < len(self.turns) and self.turns[index] < high else high

    def last_turn(self, low: int, high: int) -> int:
        """Return the last kernel between two positions that shows a pass's end or beginning; the lower without one."""
        index = bisect_left(self.turns, high) - 1
        return self.turns[index] if index >= 0 and self.turns[index] > low else low

    def first_norm_of_pass(self, low: int, mark: int) -> int:
        """Return the first of the norms right before a mark: a draft layer may norm two inputs and join them."""
        while self.classes[mark - 1] == NORM and mark - 1 > low and self.passes_between(low, mark - 1):
            mark -= 1
        return mark

    def weak_border(self, low: int, high: int) -> int:
        """Return a border where no norm shows: the start of the last run of products before the next anchor."""
        index = bisect_left(self.gemms, high) - 1
        return self.gemms[index] if index >= 0 and self.gemms[index] > low else high

    def block_starts(self, marks: list[int], by_norm: bool) -> list[int]:
        """Return where blocks start, given the mark each starts with: before the rest of its norm.

        A model without input norms starts with its projections, before the first mark.
        """
        if not by_norm or not marks:
            return marks
        if self._leads_with_product(marks):
            return [self._first_product(mark) for mark in marks]
        if not self.vocabulary.bare_norm[self.tokens[marks[0]]]:
            return marks
        # The first mark follows the embedding, not a block; the others agree on how long a norm's head is.
        spans = Counter(mark - self._own_head(mark) for mark in marks[1:])
        span = max(spans, key=lambda n: (spans[n], n)) if spans else 0
        self.usual_head = tuple(self._head_tokens(marks[1:], span))
        return [head_of_norm(self, mark, self.usual_head) for mark in marks]

    def _leads_with_product(self, marks: list[int]) -> bool:
        index = bisect_left(self.gemms, marks[0]) - 1
        if index < 0 or bisect_left(self.norms, marks[0]) > bisect_right(self.norms, self.gemms[index]):
            return False
        token = self.tokens[self.gemms[index]]
        same = 0
        for mark in marks[1:]:
            at = bisect_left(self.gemms, mark) - 1
            same += bool(at >= 0 and self.tokens[self.gemms[at]] == token)
        return same * 2 > len(marks) - 1 > 0

    def _first_product(self, mark: int) -> int:
        """The first of the products that stand between the norm before a mark and the mark."""
        before = bisect_left(self.norms, mark) - 1
        low = self.norms[before] if before >= 0 else -1
        index = bisect_right(self.gemms, low)
        return self.gemms[index] if index < len(self.gemms) and self.gemms[index] < mark else mark

    def _own_head(self, mark: int) -> int:
        """Where the norm around a bare norm kernel starts, by what stands before it alone.

        It follows the last kernel of the part before, and that part's residual addition if it comes at once.
        """
        position = mark - 1
        low = max(mark - _LONGEST_NORM, -1)
        while position > low and self.classes[position] in (OTHER, VIEW, EMBED):
            position -= 1
        start = position + 1
        if position <= low:
            return mark
        return _after_residual(self, start, mark)

    def _head_tokens(self, marks: list[int], span: int) -> list[int]:
        for mark in marks:
            if mark - self._own_head(mark) == span:
                return [int(token) for token in self.tokens[mark - span : mark]]
        return []


def _turns(tokens: IntArray, classes: ByteArray) -> list[int]:
    """Kernels that show where a pass through the model ends or begins; index kernels of every block do not."""
    where = np.flatnonzero(np.isin(classes, (SAMPLE, EMBED)))
    counts = np.bincount(tokens[where]) if len(where) else np.zeros(1, dtype=np.int64)
    frequent = max(_TURNS_FROM, _TURNS_SHARE * float((classes == MIXER).sum()))
    positions: list[int] = where[(classes[where] == SAMPLE) | (counts[tokens[where]] < frequent)].tolist()
    return positions


def _after_residual(layout: StepLayout, start: int, mark: int) -> int:
    """Skip the residual addition of the part before: an addition before any copy or conversion."""
    adds = layout.vocabulary.adds
    for position in range(start, mark):
        if layout.classes[position] == VIEW:
            continue
        if adds[layout.tokens[position]]:
            return position + 1
        if layout.vocabulary.roles[layout.tokens[position]] == "copy":
            return start
    return start


def head_of_norm(layout: StepLayout, mark: int, usual: tuple[int, ...]) -> int:
    """Return where the norm with its heart at `mark` starts: as far back as it looks like the usual one."""
    if not usual:
        return mark
    position = mark
    for token in reversed(usual):
        if position == 0 or layout.tokens[position - 1] != token:
            break
        position -= 1
    return position


def matching_end(layout: StepLayout, start: int, peers: list[tuple[int, int]]) -> int:
    """Return where the events from `start` on stop matching one of the peers (start, end)."""
    best = 0
    for first, last in peers:
        reference = layout.tokens[first:last].tolist()
        window = layout.tokens[start : start + 2 * len(reference) + 8].tolist()
        for match in SequenceMatcher(None, reference, window, autojunk=False).get_matching_blocks():
            if match.size and match.b <= match.a + _LONGEST_STRAY:
                best = max(best, match.b + match.size)
    return start + best


def tail_end(layout: StepLayout, anchor_end: int, starts: list[int], ends: list[int]) -> int:
    """Return where the last block ends when no final norm shows: where it stops matching a block before it."""
    # The last three blocks, each from after its mixing on: what follows the last anchor is compared with those.
    peers = []
    whole = min(len(starts), len(ends))
    recent = slice(max(whole - 3, 0), whole)
    for start, end in zip(starts[recent], ends[recent], strict=True):
        mixing = np.flatnonzero(np.isin(layout.classes[start:end], (MIXER, POSITION)))
        peers.append((start + int(mixing[-1]) + 1 if len(mixing) else start, end))
    if not ends:
        product = bisect_left(layout.products, layout.length) - 1
        last = layout.open_feed_forward(anchor_end)
        if last is None:
            last = layout.feed_forward_end(anchor_end, layout.length)
        if last is None:
            last = layout.products[product] if product >= 0 else anchor_end
        return max(last, anchor_end) + 1
    return matching_end(layout, anchor_end + 1, peers)
