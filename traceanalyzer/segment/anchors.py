"""Anchors: the one place of every block where tokens are mixed (attention or a state-space scan)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.tokens import (
    ACT,
    COMBINE,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    POSITION,
    ROUTE,
    SAMPLE,
    ByteArray,
    IntArray,
    KernelVocabulary,
)

_STRUCTURE = np.zeros(16, dtype=np.bool_)
_STRUCTURE[[NORM, GEMM, EXPERT, MIXER, POSITION, ROUTE, COMBINE, ACT]] = True
_MIXING = np.zeros(16, dtype=np.bool_)
_MIXING[[MIXER, POSITION]] = True
_PARTING = (ACT, EXPERT, ROUTE, COMBINE, SAMPLE)
_MERGE_OVER_GEMMS = 2
"""Matrix products that one mixing of tokens may have within it. Chosen, not fitted."""
_STATES = ("mamba", "linear")
"""Mixers that carry a state; they share the convolution before it."""
_LEAST_PAIRS = 3
"""Layers in a row with two attentions that make a decoder with cross attention, unless there are no other layers.
Chosen, not fitted."""


@dataclass(frozen=True)
class Anchor:
    """A run of kernels that mix tokens, with what serves them (rope, KV write).

    Attributes:
        start, end: first and last position (inclusive) in the step.
        token: the token that stands for it: of its longest-named role, the first mixer, else its first kernel.
        mixes: whether a mixer was seen (false: only the rope or KV write of one that the recording lost).
        tokens: all of its tokens.
    """

    start: int
    end: int
    token: int
    mixes: bool
    tokens: frozenset[int]


def find_anchors(tokens: IntArray, vocabulary: KernelVocabulary, known: frozenset[int] = frozenset()) -> list[Anchor]:
    """Return the anchors of a step in order of time; linear in its kernels.

    Args:
        tokens: token of each event.
        vocabulary: what the tokens are.
        known: tokens that serve a mixer elsewhere in the trace, which makes them anchors without one, too.
    """
    classes = vocabulary.classes[tokens]
    # Runs of mixing kernels among those that have a place in a block [structural kernels]; copies and unknown kernels
    # between them part no run.
    positions = np.flatnonzero(_STRUCTURE[classes])
    mixing = _MIXING[classes[positions]]
    edges = np.flatnonzero(np.diff(mixing, prepend=False, append=False))
    first, last = edges[::2], edges[1::2] - 1
    content = _contents(tokens[positions], first, last, vocabulary)
    starts, ends = positions[first], positions[last]
    runs = [Anchor(start, end, *own) for start, end, own in zip(starts.tolist(), ends.tolist(), content, strict=True)]
    merged = _merge(runs, _between(classes, starts, ends), vocabulary)
    merged = _join_cross_attention(merged, classes, vocabulary)
    # A run without a mixer counts only if its kernels serve a mixer elsewhere: then the recording lost the mixer.
    serving = known.union(*(run.tokens for run in merged if run.mixes))
    return [run for run in merged if run.mixes or run.tokens <= serving]


def serving_tokens(tokens: IntArray, vocabulary: KernelVocabulary) -> frozenset[int]:
    """Return the tokens that mix or serve a mixer anywhere in a sequence."""
    return frozenset().union(*(anchor.tokens for anchor in find_anchors(tokens, vocabulary) if anchor.mixes))


def _contents(
    tokens: IntArray, first: IntArray, last: IntArray, vocabulary: KernelVocabulary
) -> list[tuple[int, bool, frozenset[int]]]:
    """Token, whether it mixes, and all tokens of each run; runs of the same kernels share one reading."""
    known: dict[bytes, tuple[int, bool, frozenset[int]]] = {}
    contents = []
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        own = tokens[low : high + 1]
        key = own.tobytes()
        if key not in known:
            listed = own.tolist()
            mixers = [token for token in listed if vocabulary.classes[token] == MIXER]
            known[key] = ((mixers or listed)[0], bool(mixers), frozenset(listed))
        contents.append(known[key])
    return contents


def _between(classes: ByteArray, starts: IntArray, ends: IntArray) -> list[tuple[int, int, int, int]]:
    """Feed-forward (or sampling) kernels, norms, matrix products between each run and the next; norms after these.

    The last figure counts the norms after the first of the products: without any, no block can begin there.
    """
    products = np.append(np.flatnonzero(classes == GEMM), len(classes))
    first = np.minimum(products[np.searchsorted(products, ends[:-1], side="right")], starts[1:])
    norms = np.concatenate(([0], np.cumsum(classes == NORM)))
    counts = []
    for wanted in (_PARTING, (NORM,), (GEMM,)):
        selected = np.zeros(16, dtype=np.bool_)
        selected[list(wanted)] = True
        total = np.concatenate(([0], np.cumsum(selected[classes])))
        counts.append((total[starts[1:]] - total[ends[:-1] + 1]).tolist())
    counts.append((norms[starts[1:]] - norms[first]).tolist())
    return list(zip(*counts, strict=True))


def _merge(runs: list[Anchor], between: list[tuple[int, int, int, int]], vocabulary: KernelVocabulary) -> list[Anchor]:
    """Join runs that belong to one block: rope before a projection, a convolution before its scan."""
    merged = runs[:1]
    for run, gap in zip(runs[1:], between, strict=True):
        last = merged[-1]
        if _same_block(last, run, gap, vocabulary):
            token = last.token if last.mixes else run.token
            merged[-1] = Anchor(last.start, run.end, token, last.mixes or run.mixes, last.tokens | run.tokens)
        else:
            merged.append(run)
    return merged


def _same_block(last: Anchor, run: Anchor, between: tuple[int, int, int, int], vocabulary: KernelVocabulary) -> bool:
    parting, norms, products, bordering = between
    if parting or products > _MERGE_OVER_GEMMS:
        return False
    if not last.tokens.isdisjoint(run.tokens):
        # Attention in chunks, a projection of the cached keys before each.
        return not norms and products < _MERGE_OVER_GEMMS
    if not (last.mixes and run.mixes):
        return not norms
    kind, other = vocabulary.mixers[last.token], vocabulary.mixers[run.token]
    if kind in _STATES and other in _STATES:
        return True
    if kind != other:
        return products > 0 and not bordering  # state space and attention side by side
    return not norms


def _apart(anchors: list[Anchor], classes: ByteArray, vocabulary: KernelVocabulary) -> list[bool]:
    """For each gap between anchors, whether it parts layers: within one, only a norm is between."""
    starts, ends = np.array([a.start for a in anchors]), np.array([a.end for a in anchors])
    gaps = _between(classes, starts, ends)
    return [
        not norms or parting > 0 or {vocabulary.mixers[one.token], vocabulary.mixers[two.token]} != {"attention"}
        for one, two, (parting, norms, *_) in zip(anchors, anchors[1:], gaps, strict=False)
    ]


def _pairs_end(apart: list[bool], at: int) -> int:
    """Return where a run of pairs from an anchor on ends: a gap within a layer, then one between layers, and so on."""
    end = at
    while end < len(apart) and not apart[end] and (end + 1 == len(apart) or apart[end + 1]):
        end += 2
    return end


def _join_cross_attention(anchors: list[Anchor], classes: ByteArray, vocabulary: KernelVocabulary) -> list[Anchor]:
    """Join the two attentions of an encoder-decoder's layers: every other gap then has no feed-forward."""
    if len(anchors) < 4:
        return anchors
    apart = _apart(anchors, classes, vocabulary)
    joined: list[Anchor] = []
    at = 0
    while at < len(anchors):
        end = _pairs_end(apart, at)
        pairs = (end - at) // 2
        if pairs >= _LEAST_PAIRS or (pairs > 1 and at == 0 and end >= len(anchors) - 1):
            for one, two in zip(anchors[at:end:2], anchors[at + 1 : end : 2], strict=True):
                joined.append(Anchor(one.start, two.end, one.token, True, one.tokens | two.tokens))
            at = end
        else:
            joined.append(anchors[at])
            at += 1
    return joined
