"""Whether what repeats is a transformer at all: a doubt of its own, next to where its blocks begin and end.

`confidence.rate` doubts borders and was fitted to transformers; it says nothing of networks that are none. A block of a
transformer mixes tokens, norms, and multiplies matrices before and after the mixing:

    norm  product  ATTENTION  product  norm  product  act  product       a block
    conv  batch norm  relu  conv  batch norm  add                        none: nothing mixes tokens
    group norm  product  ATTENTION  product  add  conv  conv             none: no norm of its own, convolutions lead
    product  softmax  product  softmax                                   none: no projections, no norm

`weigh` multiplies the confidence in the borders by how far this holds, and takes the blocks back where it does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from traceanalyzer.segment.confidence import in_a_trace
from traceanalyzer.segment.cut import Cut, no_blocks
from traceanalyzer.segment.tokens import (
    COMM,
    CONV,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    POSITION,
    ROUTE,
    VIEW,
    ByteArray,
    IntArray,
    KernelVocabulary,
)

_SQUASHES = re.compile(r"(?i)tanh|sigmoid|relu|clamp|elu_")
"""Activations that are elementwise kernels like others."""
DOUBTFUL = 0.05
"""Most that blocks may claim which are probably none of a transformer. Of the families in `synthetic.negatives.FITTED`,
none of the blocks shown for such signs are right; a transformer that fuses its norms away shows the same ones."""
_MOST_BLOCKS = 0.5
"""Share of the blocks that must look like a transformer's. Chosen, with those below, by trying values against the
families in `synthetic.negatives.FITTED` and generated transformers; `bench.negatives` measures what they give."""
_LEAST_COVERED = 0.5
"""Share of the step's matrix products that must lie in blocks. As above."""
_MOST_CONVOLVED = 0.25
"""Share of the time from the first block to the last that convolutions may take. As above."""
_CARRIED_BY_CONVOLUTIONS = 0.5
"""The same from which there are no blocks at all: a network of convolutions that attends somewhere. As above."""
_UNKNOWN_MIXER = 0.6
"""Factor where norms, projections and feed-forward are a transformer's, and the attention's name is unknown. Chosen:
about the share of generated models with a renamed attention that came out right."""
_SAMPLED = 9
"""Blocks that are looked at, spread over the step: bounds the work. Chosen, not fitted."""
_PRODUCTS = (GEMM, EXPERT)
_SERVED = 0.9
"""The same where each block has a rope or KV write. As above."""


def weigh(cut: Cut, tokens: IntArray, durations: IntArray, vocabulary: KernelVocabulary) -> Cut:
    """Return the blocks with a confidence that also weighs whether they are a transformer's; none if they are not.

    Args:
        cut: blocks, with the confidence that their borders are right.
        tokens, durations: token and ns of each event of the step, [events].
        vocabulary: what the tokens are.
    """
    return with_strength(cut, strength(cut, tokens, durations, vocabulary))


def with_strength(cut: Cut, chance: float) -> Cut:
    """Return the blocks of a step that are a transformer's with that chance."""
    if not chance:
        return no_blocks(len(cut.block_of))
    confidence = min(cut.confidence, DOUBTFUL) if chance <= DOUBTFUL else cut.confidence * chance
    return replace(cut, confidence=round(confidence, 5))


def in_a_trace_with(cut: Cut, chance: float) -> Cut:
    """Return the blocks of a sequence with their confidence as part of a trace.

    `in_a_trace` is fitted to transformers, so it lifts the doubt about borders only. The chance that they are a
    transformer's comes on top.
    """
    return with_strength(replace(cut, confidence=in_a_trace(cut.confidence)), chance)


def strength(cut: Cut, tokens: IntArray, durations: IntArray, vocabulary: KernelVocabulary) -> float:
    """Return the chance that blocks are a transformer's; 0 where nothing speaks for it. See `weigh`."""
    if not cut.count:
        return 0.0
    blocks = Counter(tokens[cut.block_of == number].tobytes() for number in _sampled(cut.count))
    shapes = {_Shape(np.frombuffer(block, dtype=np.int64), vocabulary): count for block, count in blocks.items()}
    if not _most(shapes, _Shape.mixes):
        return _without_mixer(shapes)
    if not _most(shapes, _Shape.is_block):
        # Attention with a norm may be part of a model that is not understood; without one it is a benchmark's.
        return DOUBTFUL if _most(shapes, _Shape.norms_and_multiplies) else 0.0
    classes = vocabulary.classes[tokens]
    products = np.isin(classes, _PRODUCTS)
    covered = float(np.mean(cut.block_of[products] >= 0)) if products.any() else 0.0
    convolved = _convolved(cut, classes, durations)
    if convolved > _CARRIED_BY_CONVOLUTIONS:
        return 0.0
    return DOUBTFUL if covered < _LEAST_COVERED or convolved > _MOST_CONVOLVED else 1.0


def _without_mixer(shapes: Mapping[_Shape, int]) -> float:
    """The same of blocks in which nothing is known to mix tokens, by what else they hold."""
    if _most(shapes, lambda shape: CONV in shape.classes):
        return 0.0
    if _most(shapes, _Shape.serves):
        return _SERVED
    if _most(shapes, _Shape.routes) or _most(shapes, _Shape.reduces_over_ranks):
        return DOUBTFUL  # half a block: a mixture of experts alone, or products that ranks share
    return _UNKNOWN_MIXER if _most(shapes, _Shape.has_place_for_attention) else 0.0


def _most(shapes: Mapping[_Shape, int], holds: Callable[[_Shape], bool]) -> bool:
    """Whether something holds for most blocks; `shapes` counts those of the same kernels in the same order."""
    return sum(count for shape, count in shapes.items() if holds(shape)) >= _MOST_BLOCKS * sum(shapes.values())


def _convolved(cut: Cut, classes: ByteArray, durations: IntArray) -> float:
    """Share of the kernel time from the first block to the last that goes into convolutions."""
    inside = np.flatnonzero(cut.block_of >= 0)
    span = slice(int(inside[0]), int(inside[-1]) + 1)
    total = int(durations[span].sum())
    return float(durations[span][classes[span] == CONV].sum()) / total if total else 0.0


def _sampled(count: int) -> list[int]:
    """A few of the blocks, spread over all: enough to tell what they are."""
    numbers: list[int] = np.unique(np.linspace(0, count - 1, min(count, _SAMPLED)).astype(np.int64)).tolist()
    return numbers


class _Shape:
    """What a block holds, and in which order.

    Attributes:
        classes: class of each kernel, views left out.
        tokens: their tokens.
        mixers, norms, products: positions among them.
    """

    def __init__(self, block: IntArray, vocabulary: KernelVocabulary) -> None:
        self.tokens = block[vocabulary.classes[block] != VIEW]
        self.vocabulary = vocabulary
        self.classes = vocabulary.classes[self.tokens]
        self.mixers = self._at(MIXER)
        self.norms = self._at(NORM)
        self.products = self._at(*_PRODUCTS)

    def _at(self, *wanted: int) -> list[int]:
        positions: list[int] = np.flatnonzero(np.isin(self.classes, wanted)).tolist()
        return positions

    def mixes(self) -> bool:
        return bool(self.mixers)

    def routes(self) -> bool:
        """Whether experts are chosen, by kernels made for it or by a sort."""
        return ROUTE in self.classes or EXPERT in self.classes or bool(self.vocabulary.sorts[self.tokens].any())

    def reduces_over_ranks(self) -> bool:
        """Whether ranks add up what products computed, as tensor parallelism does."""
        return COMM in self.classes and len(self.products) > 1

    def serves(self) -> bool:
        """Whether a rope or KV write stands among norms and products: the mixer itself was lost or is unknown."""
        return POSITION in self.classes and bool(self.norms) and len(self.products) > 2

    def norms_and_multiplies(self) -> bool:
        return bool(self.norms) and len(self.products) > 1

    def is_block(self) -> bool:
        """Whether products lead to the mixing and from it, next to a norm (or a KV write) of the same block."""
        if not self.mixers:
            return False
        first, last = self.mixers[0], self.mixers[-1]
        ahead = [p for p in self.products if p < first]
        behind = [p for p in self.products if p > last]
        if not (self.norms or POSITION in self.classes) or not ahead or not behind:
            return False
        if not self.vocabulary.unfused[self.tokens[first]]:
            # Attention alone has two products, and a state space may do without a feed-forward.
            return len(self.products) > 2 or self.vocabulary.mixers[self.tokens[first]] != "attention"
        return len(ahead) > 1 and len(behind) > 3 and self._projects(ahead[-2:], behind[:2])

    def _projects(self, ahead: list[int], behind: list[int]) -> bool:
        """Whether projections stand right before and after the two products around a softmax, attention's own.

        Between them is no activation: a tower whose features a softmax weighs has one there.
        """
        normed = NORM in self.classes[behind[0] : behind[1]]
        return not (normed or self._activates(*ahead) or self._activates(*behind))

    def _activates(self, low: int, high: int) -> bool:
        between = self.tokens[low + 1 : high].tolist()
        return any(
            self.vocabulary.activates[token] or _SQUASHES.search(self.vocabulary.names[token]) for token in between
        )

    def has_place_for_attention(self) -> bool:
        """Whether two products with something unknown between follow a norm, and then a norm and a feed-forward."""
        active = np.flatnonzero(self.vocabulary.activates[self.tokens])
        norms = [p for p in self.norms if len(active) and p < active[0]]
        if len(norms) < 2:
            return False
        ahead = [p for p in self.products if norms[-2] < p < norms[-1]]
        behind = [p for p in self.products if p > norms[-1]]
        if len(ahead) < 2 or len(behind) < 2:
            return False
        return bool(self.vocabulary.unknown[self.tokens[ahead[0] : ahead[-1]]].any())
