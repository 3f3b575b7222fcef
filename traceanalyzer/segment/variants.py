"""Variants and kinds: which blocks are of the same content, and what sets the others apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from traceanalyzer.segment.letters import letters
from traceanalyzer.segment.plain_experts import is_plain_mixture
from traceanalyzer.segment.reach import Reach, indexes
from traceanalyzer.segment.tokens import COMBINE, EXPERT, ROUTE, IntArray, KernelVocabulary

Content: TypeAlias = "tuple[tuple[int, int], ...]"
"""Tokens of a block and how often it has each, by token."""

_ROUTED = np.zeros(16, dtype=np.bool_)
_ROUTED[[EXPERT, ROUTE, COMBINE]] = True


@dataclass(frozen=True)
class Kinds:
    """What each block of a step is: its key (equal content, equal key), kind, and the period of the keys."""

    keys: tuple[tuple[Content, str | None], ...]
    kinds: tuple[str | None, ...]
    period: int | None


def tell_apart(
    blocks: list[IntArray],
    durations: list[IntArray],
    vocabulary: KernelVocabulary,
    *,
    towers: list[str] | None = None,
    generates: bool = True,
    drafted: Sequence[bool] = (),
) -> Kinds:
    """Group a step's blocks.

    Args:
        blocks: tokens of each block.
        durations: ns of each of them, over several steps their median.
        vocabulary: what the tokens are.
        towers: of each block the tower it belongs to, in words; None where there is only one.
        generates: whether they are a language model's; only these alternate between windows and full attention.
        drafted: of each block whether it is a draft model's; empty where there is none.
    """
    # Blocks of the same kernels in the same order are read once: names[i] is that of block i.
    names = [block.tobytes() for block in blocks]
    distinct = dict(zip(names, blocks, strict=True))
    content_of = _without_strays({name: Counter(block.tolist()) for name, block in distinct.items()}, Counter(names))
    kinds = _kinds(names, distinct, vocabulary, Reach(blocks, durations, vocabulary, towers, generates, drafted))
    keys = tuple((content_of[name], kind) for name, kind in zip(names, kinds, strict=True))
    return Kinds(keys, kinds, smallest_period(keys))


def _kinds(
    names: list[bytes], distinct: dict[bytes, IntArray], vocabulary: KernelVocabulary, reach: Reach
) -> tuple[str | None, ...]:
    """Name each block by what sets it apart: tower, mixer, indexer, reach of the attention, feed-forward."""
    of = {name: _facts(block, vocabulary) for name, block in distinct.items()}
    mixers, indexers, feeds = zip(*(of[name] for name in names), strict=True) if names else ((), (), ())
    words = (
        reach.towers if reach.towers is not None else [None for _ in names],
        _where_several(mixers),
        indexers if len(set(indexers)) > 1 else [None for _ in names],
        reach.words(list(mixers)),
        feeds if len(set(feeds)) > 1 else [None for _ in names],
    )
    # Where all blocks are of one kind, the feed-forward names it.
    alone = feeds[0] if len(set(feeds)) == 1 else None
    return tuple("+".join(word for word in own if word) or alone for own in zip(*words, strict=True))


def _facts(block: IntArray, vocabulary: KernelVocabulary) -> tuple[str | None, str | None, str | None]:
    """Mixer, indexer and feed-forward of a block, in words; None for what it does not show."""
    indexer = "with indexer" if indexes(block, vocabulary) else None
    return _mixer(block, vocabulary), indexer, _feed_forward(block, vocabulary)


def _where_several(mixers: Sequence[str | None]) -> Sequence[str | None]:
    """The mixers, if there are several kinds of them; else nothing, as they set no block apart."""
    return mixers if len(set(mixers) - {None}) > 1 else [None for _ in mixers]


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
    """Short names for variants: A, B, ... in order of appearance within steps of a phase and depth.

    Args:
        generates: whether the blocks are a language model's, see `tell_apart`.
    """

    def __init__(self, generates: bool = True) -> None:
        self.generates = generates
        self.known: dict[object, dict[object, str]] = defaultdict(dict)
        self.depths: dict[str, int] = {}

    def depth_of(self, phase: str, count: int, *, complete: bool) -> int:
        """Return the depth that a step's variants are named with: a cut-off step is like whole ones of its phase."""
        if complete:
            self.depths.setdefault(phase, count)
            return count
        return self.depths.get(phase, count)

    def __call__(self, space: object, key: object) -> str:
        """Return the name of a variant among steps that are compared with each other."""
        own = self.known[space]
        if key not in own:
            own[key] = letters(len(own))
        return own[key]
