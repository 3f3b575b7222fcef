"""Variants and kinds: which blocks are of the same content, and what sets the others apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from traceanalyzer.segment.plain_experts import is_plain_mixture
from traceanalyzer.segment.tokens import COMBINE, EXPERT, MIXER, ROUTE, BoolArray, IntArray, KernelVocabulary

Content: TypeAlias = "tuple[tuple[int, int], ...]"
"""Tokens of a block and how often it has each, by token."""

_ROUTED = np.zeros(16, dtype=np.bool_)
_ROUTED[[EXPERT, ROUTE, COMBINE]] = True
_APART = 1.25
"""Least ratio between two populations of attention times. Chosen, not fitted."""
_SPREAD = 1.6
"""How much wider the gap between two populations must be than either of them (logarithms of durations).
Chosen, not fitted."""


@dataclass(frozen=True)
class Kinds:
    """What each block of a step is: its key (equal content, equal key), kind, and the period of the keys."""

    keys: tuple[tuple[Content, str | None], ...]
    kinds: tuple[str | None, ...]
    period: int | None


def tell_apart(blocks: list[IntArray], durations: list[IntArray], vocabulary: KernelVocabulary) -> Kinds:
    """Group a step's blocks.

    Args:
        blocks: tokens of each block.
        durations: ns of each of them, over several steps their median.
    """
    # Blocks of the same kernels in the same order are read once: names[i] is that of block i.
    names = [block.tobytes() for block in blocks]
    distinct = dict(zip(names, blocks, strict=True))
    content_of = _without_strays({name: Counter(block.tolist()) for name, block in distinct.items()}, Counter(names))
    kinds = _kinds(names, distinct, blocks, durations, vocabulary)
    keys = tuple((content_of[name], kind) for name, kind in zip(names, kinds, strict=True))
    return Kinds(keys, kinds, smallest_period(keys))


def _kinds(
    names: list[bytes],
    distinct: dict[bytes, IntArray],
    blocks: list[IntArray],
    durations: list[IntArray],
    vocabulary: KernelVocabulary,
) -> tuple[str | None, ...]:
    """Name each block by what sets it apart from the others: mixer, reach of the attention, feed-forward."""
    mixer_of = {name: _mixer(block, vocabulary) for name, block in distinct.items()}
    feed_of = {name: _feed_forward(block, vocabulary) for name, block in distinct.items()}
    mixing_of = {name: vocabulary.classes[block] == MIXER for name, block in distinct.items()}
    mixers, feeds = [mixer_of[name] for name in names], [feed_of[name] for name in names]
    words = (
        _where_several(mixers),
        _reach([mixing_of[name] for name in names], durations, _models(blocks, mixers, vocabulary)),
        feeds if len(set(feeds)) > 1 else [None] * len(feeds),
    )
    # Where all blocks are of one kind, the feed-forward names it.
    alone = feeds[0] if len(set(feeds)) == 1 else None
    return tuple("+".join(word for word in own if word) or alone for own in zip(*words, strict=True))


def _where_several(mixers: list[str | None]) -> list[str | None]:
    """The mixers, if there are several kinds of them; else nothing, as they set no block apart."""
    return mixers if len(set(mixers) - {None}) > 1 else [None] * len(mixers)


def _without_strays(contents: dict[bytes, Counter[int]], counts: Counter[bytes]) -> dict[bytes, Content]:
    """Leave out kernels that only one block has on top of what others have: they are somebody else's."""
    # A kernel in one block only, on top of a content that others have: the block gets that content.
    plain = {name: tuple(sorted(content.items())) for name, content in contents.items()}
    blocks: Counter[Content] = Counter()
    seen_in: Counter[int] = Counter()
    for name, content in contents.items():
        blocks[plain[name]] += counts[name]
        for token in content:
            seen_in[token] += counts[name]
    cleaned = {}
    for name, content in contents.items():
        rest = tuple(sorted((token, n) for token, n in content.items() if seen_in[token] > 1))
        cleaned[name] = rest if blocks[rest] > 1 else plain[name]
    return cleaned


def _mixer(block: IntArray, vocabulary: KernelVocabulary) -> str | None:
    kinds = {vocabulary.mixers[token] for token in block.tolist()}
    return next((name for name in ("linear", "mamba", "attention") if name in kinds), None)


def _feed_forward(block: IntArray, vocabulary: KernelVocabulary) -> str | None:
    classes = vocabulary.classes[block]
    if _ROUTED[classes].any() or is_plain_mixture(block, vocabulary):
        return "moe"
    return "dense" if vocabulary.activates[block].any() else None


def _models(blocks: list[IntArray], mixers: list[str | None], vocabulary: KernelVocabulary) -> list[int | None]:
    """Number the models that the attention blocks belong to, None for other blocks.

    A vision tower before a language model (or a draft after it) has attention kernels that the other lacks, and
    its blocks come all together; kernels of one model's kinds of layers alternate.
    """
    attending = [i for i, mixer in enumerate(mixers) if mixer == "attention"]
    kernels = [
        frozenset(block[vocabulary.classes[block] == MIXER].tolist()) for block in (blocks[i] for i in attending)
    ]
    switches = [n for n in range(1, len(kernels)) if kernels[n - 1].isdisjoint(kernels[n])]
    switch = switches[0] if len(switches) == 1 else len(kernels)
    apart = frozenset().union(*kernels[:switch]).isdisjoint(frozenset().union(*kernels[switch:]))
    models: list[int | None] = [None] * len(mixers)
    for n, i in enumerate(attending):
        models[i] = int(apart and n >= switch)
    return models


def _reach(mixing: list[BoolArray], durations: list[IntArray], models: list[int | None]) -> list[str | None]:
    """Tell sliding from full attention where a model's attention times fall into two populations."""
    reach: list[str | None] = [None] * len(models)
    for model in sorted({number for number in models if number is not None}):
        attending = [i for i, number in enumerate(models) if number == model]
        if len(attending) < 3:
            continue
        times = np.log([max(int(durations[i][mixing[i]].sum()), 1) for i in attending])
        border = _border(times)
        for i, time in zip(attending, times.tolist(), strict=True):
            reach[i] = None if border is None else "full" if time > border else "sliding"
    return reach


def _border(values: npt.NDArray[np.float64]) -> float | None:
    """Where two populations part, or None where there is only one or the lone value is an outlier."""
    # The widest gap between neighbouring times [blocks of a model] is the only candidate.
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    at = int(gaps.argmax())
    low, high = ordered[: at + 1], ordered[at + 1 :]
    widest = max(float(np.ptp(low)), float(np.ptp(high)))
    if gaps[at] < np.log(_APART) or gaps[at] < _SPREAD * widest:
        return None
    # One block apart from many is an outlier, not a kind; of four or fewer it may be one.
    if min(len(low), len(high)) < 2 and len(ordered) > 4:
        return None
    return float((low[-1] + high[0]) / 2)


def smallest_period(keys: Sequence[object]) -> int | None:
    """Return after how many blocks the keys repeat, the first block aside; None where they never do.

    Linear: the longest border of the sequence, as in the Knuth-Morris-Pratt search, gives the period.
    """
    rest = keys[1:] if len(keys) > 2 and keys[0] not in keys[1:] else keys
    borders = [0] * len(rest)
    for i in range(1, len(rest)):
        border = borders[i - 1]
        while border and rest[i] != rest[border]:
            border = borders[border - 1]
        borders[i] = border + (rest[i] == rest[border])
    period = len(rest) - borders[-1] if rest else 0
    return period if 0 < period <= len(rest) // 2 else None


class VariantLabels:
    """Short names for variants: A, B, ... in order of appearance within a phase."""

    def __init__(self) -> None:
        self.known: dict[str, dict[object, str]] = defaultdict(dict)

    def __call__(self, phase: str, key: object) -> str:
        """Return the name of a variant of a phase."""
        own = self.known[phase]
        if key not in own:
            own[key] = letters(len(own))
        return own[key]


def letters(number: int) -> str:
    """Return A, B, ..., Z, AA, AB, ... for 0, 1, ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
