"""Anchors: the one place of every block where tokens are mixed (attention or a state-space scan)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.vocabulary import (
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
    Vocabulary,
)

_STRUCTURE = np.zeros(16, dtype=np.bool_)
_STRUCTURE[[NORM, GEMM, EXPERT, MIXER, POSITION, ROUTE, COMBINE, ACT]] = True
_MERGE_OVER_GEMMS = 2


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


def find_anchors(tokens: IntArray, vocabulary: Vocabulary, known: frozenset[int] = frozenset()) -> list[Anchor]:
    """Return the anchors of a step in order of time; linear in its kernels.

    Args:
        tokens: token of each event.
        vocabulary: what the tokens are.
        known: tokens that serve a mixer elsewhere in the trace, which makes them anchors without one, too.
    """
    classes = vocabulary.classes[tokens]
    positions = np.flatnonzero(_STRUCTURE[classes])
    mixing = np.isin(classes[positions], (MIXER, POSITION))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mixing, [False])).astype(np.int8)))
    runs = [
        _anchor(positions[first:last], tokens, classes, vocabulary)
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]
    merged = _merge(runs, tokens, vocabulary)
    serving = known.union(*(run.tokens for run in merged if run.mixes))
    return [run for run in merged if run.mixes or run.tokens <= serving]


def serving_tokens(tokens: IntArray, vocabulary: Vocabulary) -> frozenset[int]:
    """Return the tokens that mix or serve a mixer anywhere in a sequence."""
    return frozenset().union(*(anchor.tokens for anchor in find_anchors(tokens, vocabulary) if anchor.mixes))


def _anchor(where: IntArray, tokens: IntArray, classes: ByteArray, vocabulary: Vocabulary) -> Anchor:
    own = tokens[where]
    mixers = own[classes[where] == MIXER]
    token = int(mixers[0]) if len(mixers) else int(own[0])
    return Anchor(int(where[0]), int(where[-1]), token, bool(len(mixers)), frozenset(own.tolist()))


def _merge(runs: list[Anchor], tokens: IntArray, vocabulary: Vocabulary) -> list[Anchor]:
    """Join runs that belong to one block: rope before a projection, a convolution before its scan."""
    merged: list[Anchor] = []
    for run in runs:
        if merged and _same_block(
            merged[-1], run, vocabulary.classes[tokens[merged[-1].end + 1 : run.start]], vocabulary
        ):
            last = merged[-1]
            token = last.token if last.mixes else run.token
            merged[-1] = Anchor(last.start, run.end, token, last.mixes or run.mixes, last.tokens | run.tokens)
        else:
            merged.append(run)
    return merged


def _same_block(last: Anchor, run: Anchor, between: ByteArray, vocabulary: Vocabulary) -> bool:
    if np.isin(between, (ACT, EXPERT, ROUTE, COMBINE, SAMPLE)).any() or not last.tokens.isdisjoint(run.tokens):
        return False
    kinds = (vocabulary.mixers[last.token], vocabulary.mixers[run.token])
    scan = last.mixes and run.mixes and kinds[0] == kinds[1] and kinds[0] in ("mamba", "linear")
    if not scan and (between == NORM).any():
        return False
    return int((between == GEMM).sum()) <= _MERGE_OVER_GEMMS and (
        not (last.mixes and run.mixes) or kinds[0] == kinds[1]
    )
