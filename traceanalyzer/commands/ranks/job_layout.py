"""How a job is split: data, pipeline, tensor and expert parallel ranks, and the groups that follow from them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import polars as pl

from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.problems import TraceWarning

AXES = ("dp", "pp", "tp")
"""The axes that number a rank, slowest first: rank = (dp x PP + pp) x TP + tp. Expert groups span dp and tp."""

_WORKER = re.compile(r"(?<![A-Z])(DP|PP|TP|EP)[-_]?(\d+)")
_DESCRIBED = (
    ("tp", re.compile(r"(?<![a-z])(?:tp|tensor)", re.IGNORECASE)),
    ("pp", re.compile(r"(?<![a-z])(?:pp|pipe)", re.IGNORECASE)),
    ("dp", re.compile(r"(?<![a-z])(?:dp|data)", re.IGNORECASE)),
)

SAMPLED_CALLS = 500
"""Calls of each group that are looked at; chosen, not fitted."""

TOGETHER_NS = 500
"""End times of one call this close count as together whatever the clocks' residual; chosen, not fitted."""

CERTAIN_NS = 50_000
"""Ends further apart than this say more about the clocks than about the groups; chosen, not fitted."""

Coordinates = dict[int, dict[str, int]]


@dataclass(frozen=True)
class JobLayout:
    """The parallel layout of a job.

    Attributes:
        sizes: of dp, pp, tp and ep; None where nothing tells.
        coordinates: position of each rank on dp, pp, tp; empty when the layout is unknown.
        source: ``file names``, ``worker names``, ``process groups``, ``inferred from kernels`` or None.
    """

    sizes: dict[str, int | None]
    coordinates: Coordinates
    source: str | None

    def groups(self, axis: str) -> dict[int, tuple[int, ...]]:
        """The group on an axis (dp, pp, tp, ep or world) that each rank belongs to, in ascending order."""
        fixed = {"ep": ("pp",), "world": ()}.get(axis, tuple(name for name in AXES if name != axis))
        together: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for rank, place in sorted(self.coordinates.items()):
            together[tuple(place[name] for name in fixed)].append(rank)
        return {rank: tuple(ranks) for ranks in together.values() for rank in ranks}

    def size(self, axis: str) -> int:
        """Size of an axis; where it is unknown, at minimum the places seen on it."""
        return self.sizes.get(axis) or 1 + max((place.get(axis, 0) for place in self.coordinates.values()), default=0)


def find_layout(
    members: Sequence[Member], world_size: int, events: pl.DataFrame
) -> tuple[JobLayout, tuple[TraceWarning, ...]]:
    """Find the layout from file names, else worker names, else process groups, else from what the ranks run.

    Args:
        world_size: ranks of the job, missing ones included.
        events: columns of rank_events.EVENT_COLUMNS.
    """
    warnings: list[TraceWarning] = []
    for source, places in (("file names", _from_files(members)), ("worker names", _from_workers(members))):
        if not places or len(places) != len(members):
            continue
        layout, conflicts = _checked(places, world_size, source, _from_groups(members, world_size) or {})
        warnings += conflicts
        if layout is not None:
            return layout, tuple(warnings)
    sizes = _from_groups(members, world_size)
    if sizes is not None:
        return _numbered(members, sizes, "process groups"), tuple(warnings)
    sizes = _from_kernels(members, world_size, events)
    if sizes is not None:
        return _numbered(members, sizes, "inferred from kernels"), tuple(warnings)
    unknown = JobLayout(dict.fromkeys(("tp", "pp", "dp", "ep")), {}, None)
    return unknown, tuple(warnings)


def _from_files(members: Sequence[Member]) -> Coordinates:
    return {member.rank: dict(member.trace.metadata.parallel) for member in members if member.trace.metadata.parallel}


def _from_workers(members: Sequence[Member]) -> Coordinates:
    """Worker processes of vLLM name the axes that are larger than 1 (`VLLM::Worker_PP0_TP1`)."""
    places: Coordinates = {}
    for member in members:
        for name in member.trace.metadata.process_names.values():
            if place := {axis.lower(): int(number) for axis, number in _WORKER.findall(name)}:
                places[member.rank] = place
    return places


def _checked(
    places: Coordinates, world_size: int, source: str, stated: Mapping[str, int | None]
) -> tuple[JobLayout | None, list[TraceWarning]]:
    """A layout from stated coordinates; None where two ranks claim the same place."""
    full = {rank: {axis: place.get(axis, 0) for axis in AXES} for rank, place in places.items()}
    if clash := _same_place(full):
        first, rank, words = clash
        message = f"ranks {first} and {rank} both claim {words} in their {source}; the {source} are not used"
        return None, [TraceWarning("layout_conflict", message)]
    seen = {axis: max(place[axis] for place in full.values()) + 1 for axis in AXES}
    sizes: dict[str, int | None] = {**seen}
    warnings = []
    if len(full) < world_size and prod(seen.values()) < world_size:
        sizes = _possible(full, seen, world_size, stated)
    elif prod(seen.values()) == world_size:
        moved = [rank for rank, place in full.items() if _number(place, seen) != rank]
        if moved:
            message = f"the {source} place rank {moved[0]} elsewhere than its number does; the {source} are used"
            warnings.append(TraceWarning("layout_conflict", message, count=len(moved)))
    elif len(full) == world_size:
        message = (
            f"the {source} give dp {seen['dp']} x pp {seen['pp']} x tp {seen['tp']} in a job of {world_size} ranks"
        )
        warnings.append(TraceWarning("layout_conflict", message))
    experts = [place["ep"] for place in places.values() if "ep" in place]
    return JobLayout({**sizes, "ep": _expert_size(experts, sizes)}, full, source), warnings


def _same_place(places: Coordinates) -> tuple[int, int, str] | None:
    """Return the first two ranks that claim one place, and that place in words; None where there are none."""
    taken: dict[tuple[int, ...], int] = {}
    for rank, place in sorted(places.items()):
        key = tuple(place[axis] for axis in AXES)
        if key in taken:
            return taken[key], rank, " ".join(f"{axis}{place[axis]}" for axis in AXES)
        taken[key] = rank
    return None


def _expert_size(experts: Sequence[int], sizes: Mapping[str, int | None]) -> int | None:
    """Size of the expert-parallel groups, from the ranks' places in them: they span dp and tp."""
    if any(experts):
        return None if sizes["dp"] is None or sizes["tp"] is None else sizes["dp"] * sizes["tp"]
    return 1 if experts else None


def _possible(
    full: Coordinates, seen: Mapping[str, int], world_size: int, stated: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Sizes where ranks are missing: those on which all layouts agree that number the ranks at hand as they are."""
    divisors = [size for size in range(1, world_size + 1) if world_size % size == 0]
    possible = []
    for data, stages in product(divisors, repeat=2):
        tensor, rest = divmod(world_size, data * stages)
        sizes = {"dp": data, "pp": stages, "tp": tensor}
        fits = not rest and all(sizes[axis] >= seen[axis] and stated.get(axis) in (None, sizes[axis]) for axis in AXES)
        if fits and all(_number(place, sizes) == rank for rank, place in full.items()):
            possible.append(sizes)
    agreed = {axis: {sizes[axis] for sizes in possible} for axis in AXES}
    return {axis: next(iter(sizes)) if len(sizes) == 1 else None for axis, sizes in agreed.items()}


def _number(place: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    return (place["dp"] * sizes["pp"] + place["pp"]) * sizes["tp"] + place["tp"]


def _numbered(members: Sequence[Member], sizes: dict[str, int | None], source: str) -> JobLayout:
    tensor, stages = sizes["tp"] or 1, sizes["pp"] or 1
    coordinates = {
        member.rank: {
            "dp": member.rank // (tensor * stages),
            "pp": member.rank // tensor % stages,
            "tp": member.rank % tensor,
        }
        for member in members
    }
    return JobLayout(sizes, coordinates, source)


def _from_groups(members: Sequence[Member], world_size: int) -> dict[str, int | None] | None:
    """Sizes from process groups whose description names the axis (`tp`, `mesh_pp`, `DATA_PARALLEL_GROUP`)."""
    stated = _stated_sizes(members)
    if not stated:
        return None
    known = prod(stated.values())
    left = [axis for axis in AXES if axis not in stated]
    if world_size % known or (known != world_size and not left):
        return None
    rest: dict[str, int | None] = dict.fromkeys(left)
    if known == world_size:
        rest = dict.fromkeys(left, 1)
    elif len(left) == 1:
        rest = {left[0]: world_size // known}
    return {**stated, **rest, "ep": None}


def _stated_sizes(members: Sequence[Member]) -> dict[str, int]:
    """Sizes of the process groups that name their axis, the largest of each."""
    sizes: dict[str, int] = {}
    for group in (one for member in members for one in member.trace.metadata.distributed.get("pg_config") or ()):
        if not isinstance(group, dict) or not isinstance(group.get("pg_size"), int):
            continue
        described = str(group.get("pg_desc") or "")
        axis = next((axis for axis, pattern in _DESCRIBED if pattern.search(described)), None)
        if axis is not None:
            sizes[axis] = max(sizes.get(axis, 1), group["pg_size"])
    return sizes


def _from_kernels(members: Sequence[Member], world_size: int, events: pl.DataFrame) -> dict[str, int | None] | None:
    """Sizes from what the ranks run: all-reduces inside blocks mean tensor parallel, send and receive a pipeline.

    Tensor-parallel groups are the largest blocks of ranks whose all-reduces end together. Nothing is said where both
    data and tensor parallel could explain the same kernels.
    """
    if world_size == 1:
        return {"dp": 1, "pp": 1, "tp": 1, "ep": 1}
    inside = pl.col("block").is_not_null()
    facts = events.group_by("rank").agg(
        reduces=((pl.col("kind") == "all_reduce") & inside).any(),
        exchanges=pl.col("kind").is_in(["dispatch", "combine", "all_to_all"]).any(),
        passes=(pl.col("kind") == "send_recv").any(),
        computes_experts=pl.col("role").cast(pl.String).is_in(["moe_gate_up", "moe_down"]).any(),
        embeds=(pl.col("role").cast(pl.String) == "embedding").any(),
    )
    some = {name: bool(facts[name].any()) for name in facts.columns if name != "rank"}
    if _is_pipeline(facts):
        return _pipeline_sizes(facts, world_size, reduces=some["reduces"], whole=len(members) == world_size)
    spread_out: dict[str, int | None] = {"dp": world_size, "pp": 1, "tp": 1, "ep": world_size}
    if not some["reduces"]:
        return spread_out if some["exchanges"] or some["passes"] else None
    tensor = size_ending_together(events.filter(pl.col("kind") == "all_reduce", inside), world_size)
    if tensor is None or (tensor == world_size and some["exchanges"]):
        return None
    experts = world_size if some["exchanges"] else None if some["computes_experts"] else 1
    return {"dp": world_size // tensor, "pp": 1, "tp": tensor, "ep": experts}


def _is_pipeline(facts: pl.DataFrame) -> bool:
    """Whether ranks send and receive as pipeline stages do.

    NCCL runs an all-to-all as grouped sends and receives: beside experts, on ranks that all embed, that is not a
    pipeline.
    """
    exchanges = facts["computes_experts"].any() and facts["passes"].all() and facts["embeds"].all()
    return bool(facts["passes"].any()) and not exchanges


def _pipeline_sizes(
    facts: pl.DataFrame, world_size: int, *, reduces: bool, whole: bool
) -> dict[str, int | None] | None:
    """Stages from the number of ranks that embed: those are the first stage's."""
    if not whole:
        return None if reduces else {"dp": 1, "pp": world_size, "tp": 1, "ep": None}
    first = facts.filter("embeds")["rank"].sort().to_list()
    per_stage = len(first) if first and first == list(range(len(first))) else 1
    if not reduces:
        return {"dp": 1, "pp": world_size, "tp": 1, "ep": None} if per_stage == 1 else None
    if world_size % per_stage or per_stage == world_size:
        return None
    return {"dp": 1, "pp": world_size // per_stage, "tp": per_stage, "ep": None}


def size_ending_together(calls: pl.DataFrame, world_size: int) -> int | None:
    """The largest number of neighbouring ranks on which one collective's calls end together; else all ranks.

    None where ranks are missing and those at hand would be grouped alike by groups of several sizes.

    Args:
        calls: rank, start_ns, dur_ns of one kind of collective.
    """
    ranks = calls["rank"].unique().sort().to_list()
    spreads: dict[int, float] = {}
    blocks: dict[int, dict[int, tuple[int, ...]]] = {}
    for size in range(2, world_size + 1):
        if world_size % size:
            continue
        blocks[size] = neighbours(ranks, size)
        spread = spread_ns(calls, blocks[size])
        if spread is not None:
            spreads[size] = spread
    if not spreads or min(spreads.values()) > CERTAIN_NS:
        return world_size
    limit = 2 * min(spreads.values()) + TOGETHER_NS
    largest = max(size for size, spread in spreads.items() if spread <= limit)
    return largest if list(blocks.values()).count(blocks[largest]) == 1 else None


def neighbours(ranks: Sequence[int], size: int) -> dict[int, tuple[int, ...]]:
    """Return the group of each rank where every ``size`` ranks in order of number form one."""
    return {rank: tuple(other for other in ranks if other // size == rank // size) for rank in ranks}


def spread_ns(own: pl.DataFrame, groups: dict[int, tuple[int, ...]]) -> float | None:
    """Median distance of the ends of one call within the groups; None where the ranks make unequal numbers of calls."""
    texts = {rank: str(list(group)) for rank, group in groups.items()}
    ended = own.with_columns(
        group=pl.col("rank").replace_strict(texts, return_dtype=pl.String),
        k=pl.int_range(pl.len()).over("rank"),
        n=pl.len().over("rank"),
        end=pl.col("start_ns") + pl.col("dur_ns"),
    )
    if ended.select((pl.col("n").n_unique().over("group") > 1).any()).item():
        return None
    spread = (
        ended.filter(pl.col("k") < SAMPLED_CALLS)
        .group_by("group", "k")
        .agg(spread=pl.col("end").max() - pl.col("end").min())
    )["spread"].median()
    return spread if isinstance(spread, float) else None
