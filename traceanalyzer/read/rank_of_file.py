"""Which rank a trace belongs to: what the file says, else what its name tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from traceanalyzer.problems import TraceWarning
from traceanalyzer.read.metadata import TraceMetadata

RANK = re.compile(r"(?:^|[^a-z])rank[-_]?(\d{1,18})(?![a-z0-9])", re.IGNORECASE)
PARALLEL = re.compile(r"(?:^|[-_.])(dcp|dp|pp|tp|ep)[-_]?(\d{1,18})(?=$|[-_.])", re.IGNORECASE)
FRONT_END = re.compile(r"async_llm", re.IGNORECASE)
GRAPH_CAPTURE = re.compile(r"graph_capture", re.IGNORECASE)
GRAPH_CAPTURE_FOLDER = re.compile(r"(?:^|/)graph_capture_rank[^/]*/", re.IGNORECASE)

INTEGER = re.compile(r"\s*(-?[0-9]{1,18})\s*$")

LARGEST_JOB = 100_000
"""Ranks of a job beyond which what a file says of its rank or world size is not believed."""


@dataclass(frozen=True)
class PlaceInJob:
    """Where in its job a trace was recorded.

    Attributes:
        rank, world_size: None where nothing tells.
        source: ``trace``, ``filename`` or None.
        parallel: ranks within the dimensions that the file's name gives, or None.
        warnings: where file and name disagree.
    """

    rank: int | None
    world_size: int | None
    source: str | None
    parallel: dict[str, int] | None
    warnings: tuple[TraceWarning, ...] = ()


def placement(path: str, distributed: Mapping[str, Any]) -> PlaceInJob:
    """Tell the rank of a trace from ``distributedInfo`` and its file name."""
    name = PurePath(path.rsplit("!", 1)[-1]).name
    parallel = {key.lower(): int(value) for key, value in PARALLEL.findall(name)} or None
    named = _named_rank(name, parallel)
    stated, world_size = _integer(distributed.get("rank")), _integer(distributed.get("world_size"))
    warnings: tuple[TraceWarning, ...] = ()
    if max(stated or 0, world_size or 0) > LARGEST_JOB:
        message = f"rank {stated} of {world_size} is not believed: no job has more than {LARGEST_JOB:,} ranks"
        warnings = (TraceWarning("rank_conflict", message),)
        stated, world_size = None, None
    if stated is None:
        return PlaceInJob(named, world_size, None if named is None else "filename", parallel, warnings)
    if named is not None and named != stated and RANK.search(name):
        message = f"the trace says rank {stated}, its file name says rank {named}; the trace is believed"
        warnings = (*warnings, TraceWarning("rank_conflict", message))
    return PlaceInJob(stated, world_size, "trace", parallel, warnings)


def _named_rank(name: str, parallel: dict[str, int] | None) -> int | None:
    named = RANK.search(name)
    if named:
        return int(named[1])
    # SGLang names files by their tensor-parallel rank, which is the rank where no other dimension is used.
    if parallel and "tp" in parallel and not parallel.get("dp") and not parallel.get("pp"):
        return parallel["tp"]
    return None


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and (digits := INTEGER.match(value)):
        value = int(digits[1])
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def world_size(sizes: Sequence[int | None]) -> int | None:
    """Return the size of the job that the traces belong to, or None where none tells."""
    known = [size for size in sizes if size]
    return max(known) if known else None


def missing_ranks(ranks: Sequence[int | None], size: int | None) -> list[int]:
    """Return the ranks of the job that no trace was given for: up to its size, or within the gap of the known."""
    known = {rank for rank in ranks if rank is not None}
    if not known:
        return []
    upper = size if size is not None else max(known) + 1
    return [rank for rank in range(min(upper, LARGEST_JOB)) if rank not in known]


def set_warnings(traces: Sequence[TraceMetadata]) -> list[TraceWarning]:
    """Return what is odd about a set of traces of one job: gaps and duplicates."""
    size = world_size([trace.world_size for trace in traces])
    warnings = _gaps(traces, size)
    known = [trace.rank for trace in traces if trace.rank is not None]
    for rank, count in Counter(known).items():
        if count > 1:
            names = ", ".join(trace.source.path for trace in traces if trace.rank == rank)
            warnings.append(TraceWarning("duplicate_rank", f"{count} traces of rank {rank}: {names}", count=count))
    if known and size is not None and max(known) >= size:
        beyond = min(rank for rank in known if rank >= size)
        warnings.append(TraceWarning("rank_conflict", f"rank {beyond} in a job of {size}"))
    return warnings


def _gaps(traces: Sequence[TraceMetadata], size: int | None) -> list[TraceWarning]:
    missing = missing_ranks([trace.rank for trace in traces], size)
    if not missing:
        return []
    shown = ", ".join(str(rank) for rank in missing[:16]) + (", ..." if len(missing) > 16 else "")
    of = "" if size is None else f" of {size}"
    many = "s" if len(missing) > 1 else ""
    return [TraceWarning("missing_ranks", f"rank{many} {shown}{of} missing: no trace was given", count=len(missing))]
