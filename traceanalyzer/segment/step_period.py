"""Steps of a recording that shows neither sampling nor lookups: the model's final norm comes back every so many layers.

    n M n F  n M n F  n | n M n F  n M n F  n | ...
    1        2        +   3        4        +      gap 2 and gap 4 hold one norm more than the others

Between two layers stand the norms of both; where a step ends, the final norm (and the product to the logits) is added.
A pattern of unlike layers repeats, too, but adds no norm. The layers from one such gap to the next must always be as
many.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from traceanalyzer.segment.anchors import Anchor, find_anchors
from traceanalyzer.segment.tokens import EXPERT, GEMM, NORM, IntArray, KernelVocabulary

_LEAST_LAYERS = 2
"""Layers of a step, at minimum, for their number to say anything. Chosen, not fitted."""
_KEPT = 0.8
"""Share of the steps' ends that must show the final norm, and of such norms that must stand at one. Chosen, not fitted:
a recording loses few kernels."""


def periodic_borders(tokens: IntArray, idle: IntArray, vocabulary: KernelVocabulary) -> list[int]:
    """Return where steps begin, but the first; empty where nothing comes back regularly.

    Args:
        tokens: token of each event, in order of start.
        idle: pause before each event, in ns.
        vocabulary: what the tokens are.
    """
    anchors = find_anchors(tokens, vocabulary)
    if len(anchors) < 2 * _LEAST_LAYERS:
        return []
    classes = vocabulary.classes[tokens]
    norms = np.flatnonzero(classes == NORM)
    # inside[g] are the norms between anchors g and g + 1.
    ends, starts = np.array([one.end for one in anchors[:-1]]), np.array([one.start for one in anchors[1:]])
    inside = np.searchsorted(norms, starts) - np.searchsorted(norms, ends)
    usual = _usual(anchors, inside)
    gaps = _regular(np.flatnonzero(inside > usual), len(anchors))
    if not gaps:
        return []
    before = _norms_of_first(anchors, norms, gaps[0] + 1 == _distance(gaps, len(anchors)), usual)
    products = np.flatnonzero((classes == GEMM) | (classes == EXPERT))
    return [_border(anchors[gap], anchors[gap + 1], norms, products, before, idle) for gap in gaps]


def _usual(anchors: list[Anchor], inside: IntArray) -> IntArray:
    """The most frequent number of norms after anchors of each one's kind."""
    by_kind: dict[int, Counter[int]] = defaultdict(Counter)
    for anchor, count in zip(anchors, inside.tolist(), strict=False):
        by_kind[anchor.token][count] += 1
    modes = {token: max(counts, key=lambda n: (counts[n], -n)) for token, counts in by_kind.items()}
    return np.array([modes[anchor.token] for anchor in anchors[:-1]], dtype=np.int64)


def _regular(odd: IntArray, layers: int) -> list[int]:
    """Return the gaps at steps' ends, where most of the odd ones are equally far apart.

    A lone one must part the layers into two halves.
    """
    if not len(odd):
        return []
    distance = Counter(np.diff(odd).tolist()).most_common(1)[0][0] if len(odd) > 1 else int(odd[0]) + 1
    if distance < _LEAST_LAYERS or (len(odd) == 1 and layers != 2 * distance):
        return []
    offset = Counter((odd % distance).tolist()).most_common(1)[0][0]
    expected = np.arange(offset, layers - 1, distance)
    there = np.isin(expected, odd).sum()
    if there < _KEPT * len(expected) or there < _KEPT * len(odd):
        return []
    gaps: list[int] = expected.tolist()
    return gaps


def _distance(gaps: list[int], layers: int) -> int:
    return gaps[1] - gaps[0] if len(gaps) > 1 else layers - gaps[0] - 1


def _norms_of_first(anchors: list[Anchor], norms: IntArray, whole: bool, usual: IntArray) -> int:
    """Norms of a step's first block before its anchor: those of the recording's first, if a step begins there."""
    seen = int(np.searchsorted(norms, anchors[0].start)) if whole else 1
    return min(max(seen, 1), max(int(usual.max()), 1))


def _border(one: Anchor, two: Anchor, norms: IntArray, products: IntArray, before: int, idle: IntArray) -> int:
    """Where the next step begins: at the longest pause between the work that ends one and the norm that opens it."""
    at = int(np.searchsorted(norms, two.start))
    first = int(norms[max(at - before, 0)])
    final = int(norms[at - before - 1]) if at > before else one.end
    last_product = int(products[np.searchsorted(products, first) - 1]) if products[0] < first else one.end
    low = min(max(final, last_product, one.end) + 1, first)
    return low + int(idle[low : first + 1].argmax())
