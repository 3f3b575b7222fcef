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
from traceanalyzer.commands.ranks.together import size_ending_together
from traceanalyzer.problems import TraceWarning

AXES = ("dp", "pp", "tp")
"""The axes that number a rank, slowest first: rank = (dp x PP + pp) x TP + tp. Expert groups span dp and tp."""

_WORKER = re.compile(r"(?<![A-Z])(DP|PP|TP|EP)[-_]?(\d+)")
_DESCRIBED = (
    ("tp", re.compile(r"(?<![a-z])(?:tp|tensor)", re.IGNORECASE)),
    ("pp", re.compile(r"(?<![a-z])(?:pp|pipe)", re.IGNORECASE)),
    ("dp", re.compile(r"(?<![a-z])(?:dp|data)", re.IGNORECASE)),
)

Coordinates = dict[int, dict[str, int]]


@dataclass(frozen=True)
class Layout:
    """The parallel layout of a job.

    Attributes:
        sizes: of dp, pp, tp and ep; null where nothing tells.
        coordinates: position of each rank on dp, pp, tp; empty when the layout is unknown.
        source: ``file names``, ``worker names``, ``process groups``, ``inferred from kernels`` or null.
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
        """Size of an axis; where it is unknown, the places on it that are seen at least."""
        return self.sizes.get(axis) or 1 + max((place.get(axis, 0) for place in self.coordinates.values()), default=0)


def find_layout(
    members: Sequence[Member], world_size: int, events: pl.DataFrame
) -> tuple[Layout, tuple[TraceWarning, ...]]:
    """Tell the layout from file names, else worker names, else process groups, else from what the ranks run.

    Args:
        members: the ranks at hand.
        world_size: ranks of the job, missing ones included.
        events: columns of events.EVENT_COLUMNS.
    """
    warnings: list[TraceWarning] = []
    for source, places in (("file names", _from_files(members)), ("worker names", _from_workers(members))):
        if not places or len(places) != len(members):
            continue
        found, told = _checked(places, world_size, source, _from_groups(members, world_size) or {})
        warnings += told
        if found is not None:
            return found, tuple(warnings)
    sizes = _from_groups(members, world_size)
    if sizes is not None:
        return _numbered(members, sizes, "process groups"), tuple(warnings)
    sizes = _from_kernels(members, world_size, events)
    if sizes is not None:
        return _numbered(members, sizes, "inferred from kernels"), tuple(warnings)
    unknown = Layout(dict.fromkeys(("tp", "pp", "dp", "ep")), {}, None)
    return unknown, tuple(warnings)


def _from_files(members: Sequence[Member]) -> Coordinates:
    return {member.rank: dict(member.trace.metadata.parallel) for member in members if member.trace.metadata.parallel}


def _from_workers(members: Sequence[Member]) -> Coordinates:
    """Worker processes of vLLM name the axes that are larger than 1 (`VLLM::Worker_PP0_TP1`)."""
    places: Coordinates = {}
    for member in members:
        for name in member.trace.metadata.process_names.values():
            found = {axis.lower(): int(number) for axis, number in _WORKER.findall(name)}
            if found:
                places[member.rank] = found
    return places


def _checked(
    places: Coordinates, world_size: int, source: str, stated: Mapping[str, int | None]
) -> tuple[Layout | None, list[TraceWarning]]:
    """A layout from stated coordinates; null where two ranks claim the same place.

    Args:
        places: of the ranks at hand.
        world_size: ranks of the job.
        source: of the places, in words.
        stated: sizes that process groups tell.
    """
    full = {rank: {axis: place.get(axis, 0) for axis in AXES} for rank, place in places.items()}
    taken: dict[tuple[int, ...], int] = {}
    for rank, place in sorted(full.items()):
        key = tuple(place[axis] for axis in AXES)
        if key in taken:
            words = " ".join(f"{axis}{place[axis]}" for axis in AXES)
            message = f"ranks {taken[key]} and {rank} both claim {words} in their {source}; the {source} are not used"
            return None, [TraceWarning("layout_conflict", message)]
        taken[key] = rank
    seen = {axis: max(place[axis] for place in full.values()) + 1 for axis in AXES}
    sizes: dict[str, int | None] = {**seen}
    warnings = []
    if len(full) < world_size and prod(seen.values()) < world_size:
        sizes = _possible(full, seen, world_size, stated)
    elif prod(seen.values()) == world_size:
        moved = [rank for rank, place in full.items() if _number(place, seen) != rank]
        if moved:
            message = f"the {source} place rank {moved[0]} elsewhere than its number does; the {source} are believed"
            warnings.append(TraceWarning("layout_conflict", message, count=len(moved)))
    elif len(full) == world_size:
        message = f"the {source} give dp {seen['dp']} x pp {seen['pp']} x tp {seen['tp']} in a job of {world_size}"
        warnings.append(TraceWarning("layout_conflict", message))
    experts = [place["ep"] for place in places.values() if "ep" in place]
    known = None if sizes["dp"] is None or sizes["tp"] is None else sizes["dp"] * sizes["tp"]
    expert_size = known if any(experts) else (1 if experts else None)
    return Layout({**sizes, "ep": expert_size}, full, source), warnings


def _possible(
    full: Coordinates, seen: Mapping[str, int], world_size: int, stated: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Sizes where ranks are missing: those on which all layouts agree that number the ranks at hand as they are."""
    divisors = [size for size in range(1, world_size + 1) if world_size % size == 0]
    found = []
    for data, stages in product(divisors, repeat=2):
        tensor, rest = divmod(world_size, data * stages)
        sizes = {"dp": data, "pp": stages, "tp": tensor}
        fits = not rest and all(sizes[axis] >= seen[axis] and stated.get(axis) in (None, sizes[axis]) for axis in AXES)
        if fits and all(_number(place, sizes) == rank for rank, place in full.items()):
            found.append(sizes)
    agreed = {axis: {sizes[axis] for sizes in found} for axis in AXES}
    return {axis: next(iter(sizes)) if len(sizes) == 1 else None for axis, sizes in agreed.items()}


def _number(place: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    return (place["dp"] * sizes["pp"] + place["pp"]) * sizes["tp"] + place["tp"]


def _numbered(members: Sequence[Member], sizes: dict[str, int | None], source: str) -> Layout:
    tensor, stages = sizes["tp"] or 1, sizes["pp"] or 1
    coordinates = {
        member.rank: {
            "dp": member.rank // (tensor * stages),
            "pp": member.rank // tensor % stages,
            "tp": member.rank % tensor,
        }
        for member in members
    }
    return Layout(sizes, coordinates, source)


def _from_groups(members: Sequence[Member], world_size: int) -> dict[str, int | None] | None:
    """Sizes from process groups whose description names the axis (`tp`, `mesh_pp`, `DATA_PARALLEL_GROUP`)."""
    found: dict[str, int] = {}
    for member in members:
        for group in member.trace.metadata.distributed.get("pg_config") or ():
            if not isinstance(group, dict) or not isinstance(group.get("pg_size"), int):
                continue
            described = str(group.get("pg_desc") or "")
            axis = next((axis for axis, pattern in _DESCRIBED if pattern.search(described)), None)
            if axis is not None:
                size: int = group["pg_size"]
                found[axis] = max(found.get(axis, 1), size)
    if not found:
        return None
    known = 1
    for size in found.values():
        known *= size
    left = [axis for axis in AXES if axis not in found]
    if world_size % known or (known != world_size and not left):
        return None
    if known == world_size or len(left) == 1:
        rest = dict.fromkeys(left, 1) if known == world_size else {left[0]: world_size // known}
        return {**found, **rest, "ep": None}
    return {**found, **dict.fromkeys(left), "ep": None}


def _from_kernels(members: Sequence[Member], world_size: int, events: pl.DataFrame) -> dict[str, int | None] | None:
    """Sizes from what the ranks run: all-reduces inside blocks mean tensor parallel, send and receive a pipeline.

    Tensor-parallel groups are the largest blocks of ranks whose all-reduces end together. Nothing is told where both
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
        samples=(pl.col("role").cast(pl.String) == "lm_head").any(),
    )
    some = {name: bool(facts[name].any()) for name in facts.columns if name != "rank"}
    # NCCL runs an all-to-all as grouped sends and receives: beside experts that is no pipeline.
    pipeline = some["passes"] and not (
        some["computes_experts"] and bool(facts["passes"].all() and facts["embeds"].all())
    )
    experts = 1 if not some["computes_experts"] else None
    if pipeline:
        return _pipeline_sizes(facts, world_size, reduces=some["reduces"], whole=len(members) == world_size)
    if some["reduces"]:
        tensor = size_ending_together(events.filter(pl.col("kind") == "all_reduce", inside), world_size)
        if tensor is None:
            return None
        if tensor < world_size or not some["exchanges"]:
            return {
                "dp": world_size // tensor,
                "pp": 1,
                "tp": tensor,
                "ep": world_size if some["exchanges"] else experts,
            }
    if (some["exchanges"] or some["passes"]) and not some["reduces"]:
        return {"dp": world_size, "pp": 1, "tp": 1, "ep": world_size}
    return None


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
