"""Sources by position: a kernel comes from where its counterpart in a step with sources comes from.

Decode kernels have other names than prefill kernels, but the same model does the same in the same order: the n-th
kernel of a role in a block has the same origin in both. With T the kernels of a role in a block of the target and E
those of the source:

    target   norm  qkv  rope  attn  merge  o_proj        attention: T = attn merge
    source   norm  qkv  rope  attn         o_proj        attention: E = attn
                                                         attn pairs with attn; merge is a helper of it

"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.source.align_kernels import PAIR_HELPER, KernelWords, pair_up

Key = tuple[int, str, str]
"""A block (or -1 with the section), its section, a role."""

LEVELS = ("same_name", "exact", "helper", "kind", "neighbour")
"""How sure a pairing is: same name at the same place; same place; finishes the paired kernel before it; from a block of
the same kind; by name and neighbours alone."""

STRAY = 0.25
"""Share of a name's kernels in blocks of a kind that must come from a place for it to be one of theirs: a name that
plays two or three roles has a half or a third in each. Chosen, not fitted."""

_BY_NEIGHBOURS = frozenset({"other", "copy"})
"""Roles that say nothing of what a kernel is for: their kernels are paired by name and by what stands around them."""


@dataclass(frozen=True)
class PlacedKernel(KernelWords):
    """A kernel of a step in its place.

    Attributes:
        row: of the frame that it stands for.
        section, block, role: where it lies; block is -1 outside of blocks.
        stream: rank of its stream by first appearance in the block.
        origin: number of its source; -1 where it has none.
    """

    row: int
    section: str
    block: int
    role: str
    stream: int
    origin: int


@dataclass(frozen=True, eq=False)
class StepSources:
    """A step whose kernels have sources, ready to be asked.

    Attributes:
        kinds: kind of each block.
        by_place: its kernels in order, by block, section and role.
        by_kind: a place of a kind of block, section and role whose kernels all have sources.
        around: origin by name and the roles before and after, of kernels whose role says nothing.
    """

    kinds: Sequence[str | None]
    by_place: dict[Key, list[PlacedKernel]]
    by_kind: dict[tuple[str | None, str, str], list[PlacedKernel]] = field(default_factory=dict)
    around: dict[tuple[str, str, str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Sequence[PlacedKernel], kinds: Sequence[str | None]) -> StepSources:
        """Make a step's kernels ready to be asked; ``kinds`` as in the attributes."""
        by_place = places(kernels)
        by_kind: dict[tuple[str | None, str, str], list[PlacedKernel]] = {}
        for (block, section, role), own in by_place.items():
            key = (kinds[block] if block >= 0 else None, section, role)
            if block >= 0 and all(one.origin >= 0 for one in own):
                by_kind.setdefault(key, own)
        votes: dict[tuple[str, str, str, str], Counter[int]] = defaultdict(Counter)
        for kernel, before, after in neighbours(kernels):
            if kernel.origin >= 0 and kernel.role in _BY_NEIGHBOURS:
                votes[(kernel.section, kernel.name, before, after)][kernel.origin] += 1
        return cls(kinds, by_place, by_kind, {key: counts.most_common(1)[0][0] for key, counts in votes.items()})


def places(kernels: Sequence[PlacedKernel]) -> dict[Key, list[PlacedKernel]]:
    """Return the kernels of each block, section and role, in order."""
    by_place: dict[Key, list[PlacedKernel]] = defaultdict(list)
    for kernel in kernels:
        by_place[(kernel.block, kernel.section, kernel.role)].append(kernel)
    return by_place


def neighbours(kernels: Sequence[PlacedKernel]) -> list[tuple[PlacedKernel, str, str]]:
    """Return each kernel with the nearest role that says something before it and after it in its block."""
    told: list[tuple[PlacedKernel, str, str]] = []
    before: list[str] = []
    last = {"": ""}
    for kernel in kernels:
        place = f"{kernel.section}/{kernel.block}"
        before.append(last.get(place, ""))
        if kernel.role not in _BY_NEIGHBOURS:
            last[place] = kernel.role
    last = {}
    for kernel, ahead in zip(reversed(kernels), reversed(before), strict=True):
        place = f"{kernel.section}/{kernel.block}"
        told.append((kernel, ahead, last.get(place, "")))
        if kernel.role not in _BY_NEIGHBOURS:
            last[place] = kernel.role
    return told[::-1]


def by_position(
    kernels: Sequence[PlacedKernel], kinds: Sequence[str | None], source: StepSources
) -> dict[int, tuple[int, str]]:
    """Return origin and level of each kernel, by row, that a step with sources explains.

    Args:
        kernels: of a step, in order of start.
        kinds: kind of each of its blocks.
        source: of a step of the same model.
    """
    explained: dict[int, tuple[int, str]] = {}
    for (block, section, role), own in places(kernels).items():
        if role in _BY_NEIGHBOURS:
            continue
        other, level = _counterpart(block, section, role, kinds, source)
        if other:
            explained |= _paired(own, other, level)
    for kernel, before, after in neighbours(kernels):
        origin = source.around.get((kernel.section, kernel.name, before, after))
        if origin is not None and kernel.role in _BY_NEIGHBOURS:
            explained[kernel.row] = (origin, "neighbour")
    return _without_strays(kernels, kinds, explained)


def _without_strays(
    kernels: Sequence[PlacedKernel], kinds: Sequence[str | None], explained: dict[int, tuple[int, str]]
) -> dict[int, tuple[int, str]]:
    """Take back what a few kernels say against most of their name in blocks of their kind: these lost kernels.

    Where the others of the name all come from one place, they do too.
    """
    votes: dict[tuple[str | None, str], Counter[int]] = defaultdict(Counter)
    for kernel in kernels:
        if kernel.row in explained and kernel.block >= 0:
            votes[kinds[kernel.block], kernel.name][explained[kernel.row][0]] += 1
    helping = {kernel.name for kernel in kernels if explained.get(kernel.row, (0, ""))[1] == "helper"}
    kept: dict[int, tuple[int, str]] = {}
    for kernel in kernels:
        if kernel.row not in explained:
            continue
        counts = votes[kinds[kernel.block], kernel.name] if kernel.block >= 0 else Counter[int]()
        usual = [origin for origin, count in counts.items() if count >= STRAY * counts.total()]
        if kernel.block < 0 or explained[kernel.row][0] in usual:
            kept[kernel.row] = explained[kernel.row]
        elif len(usual) == 1:
            kept[kernel.row] = (usual[0], "helper" if kernel.name in helping else "kind")
    return kept


def _counterpart(
    block: int, section: str, role: str, kinds: Sequence[str | None], source: StepSources
) -> tuple[list[PlacedKernel], str | None]:
    """The source's kernels of a place, and the level where they are not of the very same block."""
    same = block < 0 or (block < len(source.kinds) and source.kinds[block] == kinds[block])
    other = source.by_place.get((block, section, role), []) if same else []
    if other and all(kernel.origin >= 0 for kernel in other):
        return other, None
    kind = kinds[block] if block >= 0 else None
    return source.by_kind.get((kind, section, role), other), "kind"


def _paired(own: list[PlacedKernel], other: list[PlacedKernel], level: str | None) -> dict[int, tuple[int, str]]:
    explained: dict[int, tuple[int, str]] = {}
    own, other = ordered(own, other), ordered(other, own)
    for one, (at, how) in zip(own, pair_up(own, other), strict=True):
        if at is None or other[at].origin < 0:
            continue
        plain = "helper" if how == PAIR_HELPER else "same_name" if one.name == other[at].name else "exact"
        explained[one.row] = (other[at].origin, level if level and plain != "helper" else plain)
    return explained


def ordered(own: list[PlacedKernel], other: list[PlacedKernel]) -> list[PlacedKernel]:
    """Return kernels by stream where both sides have the same number on each of several streams, else by start."""
    counts = Counter(kernel.stream for kernel in own)
    return (
        sorted(own, key=lambda k: k.stream) if len(counts) > 1 and counts == Counter(k.stream for k in other) else own
    )
