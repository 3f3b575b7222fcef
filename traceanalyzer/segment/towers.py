"""Towers: models of their own within one pass, such as an encoder of images next to one of text.

conv | I I I I ... I | norm, lookup | T T ... T | norm, product, conv | I I I I ... I | ...
a tower is a run of blocks with other work of a model before and after it, deep enough, unlike the others
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.tokens import CONV, EMBED, EXPERT, GEMM, MIXER, NORM, BoolArray, IntArray, KernelVocabulary

_BETWEEN = np.zeros(16, dtype=np.bool_)
_BETWEEN[[NORM, GEMM, EXPERT, EMBED, CONV]] = True
"""Classes that end a run of blocks when they stand between two of them: a final norm, a projection, an embedding."""
_COMPARED = (GEMM, EXPERT, MIXER)
_ALIKE = 0.5
"""Share of products and mixers that two runs must have in common to be passes of one tower. Chosen, not fitted."""
_LEAST = 2
"""Blocks that a tower has at minimum. Chosen: one block alone is a head or a merger."""


@dataclass(frozen=True)
class _Run:
    """Blocks in a row: the first one, how many, the work ahead of it (positions), and its products and mixers."""

    first: int
    depth: int
    ahead: slice
    products: frozenset[int]

    def is_pass_of(self, other: _Run) -> bool:
        common = len(self.products & other.products)
        return self.depth == other.depth and common >= _ALIKE * max(len(self.products | other.products), 1)


def towers_of(
    own: IntArray, block_of: IntArray, blocks: list[IntArray], vocabulary: KernelVocabulary
) -> list[str] | None:
    """Return the tower of each block in words, or None where there are not several. Linear in the events.

    Args:
        own: token of each event of the step.
        block_of: its block, or -1.
        blocks: tokens of each block.
        vocabulary: what the tokens are.
    """
    runs = _runs(own, block_of, blocks, vocabulary)
    known: list[_Run] = []
    number_of: list[int] = []
    for run in runs:
        number = next((n for n, other in enumerate(known) if run.is_pass_of(other)), len(known))
        if number == len(known):
            known.append(run)
        number_of.append(number)
    if len(known) < 2 or any(run.depth < _LEAST for run in known):
        return None
    words = [_input_of(own[run.ahead], vocabulary) for run in known]
    if len(set(words)) < len(words) or "" in words:
        words = [f"tower {number + 1}" for number in range(len(known))]
    return [words[number] for run, number in zip(runs, number_of, strict=True) for _ in range(run.depth)]


def _runs(own: IntArray, block_of: IntArray, blocks: list[IntArray], vocabulary: KernelVocabulary) -> list[_Run]:
    inside = np.flatnonzero(block_of >= 0)
    if not len(inside):
        return []
    # counted[i]: events before position i that are work of a model but of no block.
    working: BoolArray = _BETWEEN[vocabulary.classes[own]] & (block_of < 0)
    counted = np.concatenate(([0], np.cumsum(working)))
    number = block_of[inside]
    starts = np.full(len(blocks), len(own), dtype=np.int64)
    np.minimum.at(starts, number, inside)
    ends = np.zeros(len(blocks), dtype=np.int64)
    np.maximum.at(ends, number, inside + 1)
    parted = counted[np.maximum(starts[1:], ends[:-1])] > counted[ends[:-1]]
    firsts = [0, *(np.flatnonzero(parted) + 1).tolist()]
    runs = []
    for first, after in zip(firsts, [*firsts[1:], len(blocks)], strict=True):
        before = int(ends[first - 1]) if first else 0
        usual = blocks[first + (after - first) // 2]
        products = frozenset(usual[np.isin(vocabulary.classes[usual], _COMPARED)].tolist())
        runs.append(_Run(first, after - first, slice(before, int(starts[first])), products))
    return runs


def _input_of(ahead: IntArray, vocabulary: KernelVocabulary) -> str:
    """What a tower reads, by what precedes it: patches are cut by a convolution, tokens are looked up."""
    classes = vocabulary.classes[ahead]
    if vocabulary.convolution[ahead].any() or (classes == CONV).any():
        return "image tower"
    return "text tower" if (classes == EMBED).any() else ""
