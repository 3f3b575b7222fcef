"""Pairs of kernels of one role in two steps, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PAIR, PAIR_HELPER = "pair", "helper"

_NAME, _KIN, _GAP = 2, 1, -1
"""Scores of the alignment: same name, same family and kind, a kernel without counterpart; other pairs count nothing.
Chosen, not fitted."""
_LONGEST = 512
"""Kernels of a role in one place above which they are not aligned: bounds the work. Chosen, not fitted."""
_SPLIT = re.compile(r"split|merge|combine|reduce", re.IGNORECASE)


@dataclass(frozen=True)
class KernelWords:
    """What is compared of a kernel: normalised name, family and kind."""

    name: str
    family: str
    kind: str


def pair_up(own: Sequence[KernelWords], other: Sequence[KernelWords]) -> list[tuple[int | None, str]]:
    """Return for each kernel the position of its counterpart, or None, and how it was paired.

    As many on both sides pair in order. Otherwise both are aligned as a whole, and what finishes another kernel's
    work (adds up a product's parts, merges the splits of attention, copies) goes with the paired kernel before it.
    """
    if len(own) == len(other):
        return [(position, PAIR) for position in range(len(own))]
    matched = _aligned(own, other) if max(len(own), len(other)) <= _LONGEST else [None] * len(own)
    pairs: list[tuple[int | None, str]] = []
    last: int | None = None
    for kernel, position in zip(own, matched, strict=True):
        if position is None and last is not None and _finishes(kernel, other[last]):
            pairs.append((last, PAIR_HELPER))
        else:
            pairs.append((position, PAIR))
        last = position if position is not None else last
    return pairs


def _finishes(kernel: KernelWords, work: KernelWords) -> bool:
    """Whether a kernel may be what finishes another one's work."""
    if kernel.kind == "gemm_helper":
        return work.kind in ("gemm", "gemm_helper")
    if kernel.kind == "attention":
        return work.kind == "attention" and _SPLIT.search(kernel.name) is not None
    return kernel.kind == "copy"


def _score(one: KernelWords, two: KernelWords) -> int:
    if one.name == two.name:
        return _NAME
    return _KIN if (one.family, one.kind) == (two.family, two.kind) else 0


def _aligned(own: Sequence[KernelWords], other: Sequence[KernelWords]) -> list[int | None]:
    """Global alignment; among equal scores the earlier counterpart is taken."""
    rows, columns = len(own) + 1, len(other) + 1
    # best[i][j]: score of own[i:] against other[j:].
    best = [[0] * columns for _ in range(rows)]
    for i in range(rows - 2, -1, -1):
        best[i][-1] = best[i + 1][-1] + _GAP
    for j in range(columns - 2, -1, -1):
        best[-1][j] = best[-1][j + 1] + _GAP
    for i in range(rows - 2, -1, -1):
        for j in range(columns - 2, -1, -1):
            pair = best[i + 1][j + 1] + _score(own[i], other[j])
            best[i][j] = max(pair, best[i + 1][j] + _GAP, best[i][j + 1] + _GAP)
    matched: list[int | None] = []
    i = j = 0
    while i < len(own):
        if j < len(other) and best[i][j] == best[i + 1][j + 1] + _score(own[i], other[j]):
            matched.append(j)
            i, j = i + 1, j + 1
        elif j < len(other) and best[i][j] == best[i][j + 1] + _GAP:
            j += 1
        else:
            matched.append(None)
            i += 1
    return matched
