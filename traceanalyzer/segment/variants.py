"""Variants and kinds: which blocks are of the same content, and what sets the others apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.vocabulary import COMBINE, EXPERT, MIXER, ROUTE, IntArray, Vocabulary

_APART = 1.25
"""Least ratio between two populations of attention times."""
_SPREAD = 1.6
"""How much wider the gap between two populations must be than either of them (logarithms of durations)."""


@dataclass(frozen=True)
class Kinds:
    """What each block of a step is: its key (equal content, equal key), kind, and the period of the keys."""

    keys: tuple[tuple[object, ...], ...]
    kinds: tuple[str | None, ...]
    period: int | None


def tell_apart(blocks: list[IntArray], durations: list[IntArray], vocabulary: Vocabulary) -> Kinds:
    """Group a step's blocks.

    Args:
        blocks: tokens of each block.
        durations: ns of each of them, over several steps their median.
    """
    contents = _without_strays([Counter(block.tolist()) for block in blocks])
    mixers = [_mixer(block, vocabulary) for block in blocks]
    feeds = [_feed_forward(block, vocabulary) for block in blocks]
    reach = _reach(blocks, durations, mixers, vocabulary)
    words = [
        _differing(mixers) if len(set(mixers) - {None}) > 1 else [None] * len(blocks),
        reach,
        feeds if len(set(feeds)) > 1 else [None] * len(blocks),
    ]
    alone = feeds[0] if blocks and len(set(feeds)) == 1 else None
    kinds = tuple("+".join(word for word in own if word) or alone for own in zip(*words, strict=True))
    keys = tuple((tuple(sorted(content.items())), kind) for content, kind in zip(contents, kinds, strict=True))
    return Kinds(keys, kinds, smallest_period(list(keys)))


def _without_strays(contents: list[Counter[int]]) -> list[Counter[int]]:
    """Leave out kernels that only one block has on top of what another has: they are somebody else's."""
    common = {tuple(sorted(content.items())) for content, count in _counted(contents) if count > 1}
    seen_in = Counter(token for content in contents for token in content)
    cleaned = []
    for content in contents:
        rest = Counter({token: n for token, n in content.items() if seen_in[token] > 1})
        stray = len(rest) < len(content) and tuple(sorted(rest.items())) in common
        cleaned.append(rest if stray else content)
    return cleaned


def _counted(contents: list[Counter[int]]) -> list[tuple[Counter[int], int]]:
    counts = Counter(tuple(sorted(content.items())) for content in contents)
    return [(Counter(dict(content)), count) for content, count in counts.items()]


def _mixer(block: IntArray, vocabulary: Vocabulary) -> str | None:
    kinds = [vocabulary.mixers[token] for token in block.tolist() if vocabulary.classes[token] == MIXER]
    for name in ("mamba", "linear", "attention"):
        if name in kinds:
            return name
    return None


def _differing(mixers: list[str | None]) -> list[str | None]:
    return list(mixers)


def _feed_forward(block: IntArray, vocabulary: Vocabulary) -> str | None:
    classes = vocabulary.classes[block]
    if np.isin(classes, (EXPERT, ROUTE, COMBINE)).any():
        return "moe"
    return "dense" if vocabulary.activates[block].any() else None


def _reach(
    blocks: list[IntArray], durations: list[IntArray], mixers: list[str | None], vocabulary: Vocabulary
) -> list[str | None]:
    """Tell sliding from full attention where attention times fall into two populations."""
    attending = [i for i, mixer in enumerate(mixers) if mixer == "attention"]
    reach: list[str | None] = [None] * len(blocks)
    if len(attending) < 3:
        return reach
    times = np.array(
        [max(int(durations[i][vocabulary.classes[blocks[i]] == MIXER].sum()), 1) for i in attending], dtype=np.float64
    )
    border = _border(np.log(times))
    if border is None:
        return reach
    for i, time in zip(attending, np.log(times).tolist(), strict=True):
        reach[i] = "full" if time > border else "sliding"
    return reach


def _border(values: np.ndarray) -> float | None:
    """Where two populations part, or null where there is only one or the lone value is an outlier."""
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    at = int(gaps.argmax())
    low, high = ordered[: at + 1], ordered[at + 1 :]
    widest = max(np.ptp(low), np.ptp(high))
    if gaps[at] < np.log(_APART) or gaps[at] < _SPREAD * widest or min(len(low), len(high)) < 1:
        return None
    if min(len(low), len(high)) < 2 and len(ordered) > 4:
        return None
    return float((low[-1] + high[0]) / 2)


def smallest_period(keys: list[object]) -> int | None:
    """Return after how many blocks the keys repeat, the first block aside; null where they never do."""
    rest = keys[1:] if len(keys) > 2 and keys[0] not in keys[1:] else keys
    for period in range(1, len(rest) // 2 + 1):
        if all(one == two for one, two in zip(rest, rest[period:], strict=False)):
            return period
    return None
