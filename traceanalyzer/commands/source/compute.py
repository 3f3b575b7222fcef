"""Kernels by where they come from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import polars as pl

from traceanalyzer.commands.source.result import (
    SourceDocument,
    SourceLine,
    SourceMapping,
    SourceRow,
    SourceVia,
    Via,
)
from traceanalyzer.names import normalise, short_name
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.source.chains import CHAIN_COLUMNS
from traceanalyzer.source.direct import note_of
from traceanalyzer.source.frame_text import frame_of
from traceanalyzer.source.sources import UNCERTAIN, Sources, find_sources
from traceanalyzer.trace import Trace
from traceanalyzer.wording import percent

GROUPINGS = ("kernel", "role", "line", "module")
"""What a row may be."""

STACKS = (
    "the recording holds no Python stacks: record with them (vLLM: torch_profiler_with_stack in --profiler-config; "
    "SGLang: with_stack of /start_profile)"
)
_UNKNOWN = (
    TraceWarning("source_no_stacks", STACKS),
    TraceWarning(
        "source_graph_without_source",
        "they were launched by a graph, and no step with sources explains it: pass --map with a recording of an eager "
        "or prefill step, or --capture with one of the graph's capture",
    ),
    TraceWarning("source_no_launch", "the recording lacks their launches"),
)
"""Why sources are unknown, in words; the codes end in the reason."""
_OTHERS = 3
"""Other sources that a row lists."""


@dataclass(frozen=True)
class Companions:
    """What explains a recording beside itself.

    Attributes:
        other: a recording of the same model that holds stacks.
        captures: recordings of the capture of its graphs.
        notes: module path by graph node.
    """

    other: Trace | None = None
    captures: tuple[Trace, ...] = ()
    notes: dict[int, str] | None = None


def source(
    trace: Trace,
    by: str = "kernel",
    phase: str | None = None,
    step: int | None = None,
    companions: Companions | None = None,
) -> SourceDocument:
    """Say which op, module and line launched the kernels of a trace's complete steps.

    Args:
        trace: one rank's trace.
        by: kernel, role, line or module.
        phase: of the steps looked at; None for decode where there are such steps, else all.
        step: only the step of this index.
        companions: other recordings that may tell.

    Raises:
        ValueError: by is none of those listed, or no step is left to look at.
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}: {by!r}")
    steps = _steps(trace, phase, step)
    given = companions or Companions()
    known = find_sources(trace, steps, given.other, given.captures, given.notes)
    kernels = _grouped(known.kernels, by)
    total = max(_time(kernels), 1)
    shares = {via: _time(kernels.filter(pl.col("via") == via)) / total for via in get_args(Via)}
    rows = _rows(kernels, by, steps.height, total)
    phases = steps["phase"].unique().to_list()
    mapping = _mapping(known, rows)
    return SourceDocument(
        phase=phases[0] if len(phases) == 1 else None,
        steps=steps.height,
        total_us=_time(kernels) / 1e3,
        resolved_share=sum(shares.values()),
        by_via=SourceVia(**shares, none=1 - sum(shares.values())),
        line_is="function",
        mapping=mapping,
        rows=rows,
        warnings=[*known.warnings, *_doubts(kernels, mapping, total)],
    )


def _time(kernels: pl.DataFrame) -> int:
    return int(kernels["dur_ns"].sum())


def _steps(trace: Trace, phase: str | None, step: int | None) -> pl.DataFrame:
    every = segment(trace).steps
    complete = every.filter("complete", pl.col("phase") != "dummy")
    if step is not None:
        chosen = every.filter(pl.col("step") == step)
    elif phase is not None:
        chosen = every.filter("complete", pl.col("phase") == phase)
    else:
        decode = complete.filter(pl.col("phase") == "decode")
        chosen = complete if decode.is_empty() else decode
    if chosen.is_empty():
        there = ", ".join(f"{count:,} {name}" for name, count in complete.group_by("phase").len().sort("phase").rows())
        raise ValueError(f"no such step; complete steps are {there or 'none'}")
    return chosen


def _grouped(kernels: pl.DataFrame, by: str) -> pl.DataFrame:
    """Add `group`, and what groups are made of."""
    place = ["device", "step", "section", "block", "role"]
    numbered = kernels.with_columns(pl.col("name").cast(pl.String), ordinal=pl.int_range(pl.len()).over(place))
    names = numbered["name"].unique()
    normal = pl.DataFrame({"name": names, "normal": [normalise(name) for name in names]})
    numbered = numbered.join(normal, on="name", how="left", maintain_order="left")
    keys = {
        "kernel": ["section", "role", "ordinal", "normal"],
        "role": ["section", "role", "ordinal"],
        "line": ["model_line", "line", "op"],
        "module": ["modules"],
    }[by]
    return numbered.with_columns(group=pl.struct(keys))


def _rows(kernels: pl.DataFrame, by: str, steps: int, total: int) -> list[SourceRow]:
    """Make a row of each group: its modal source, and the share of kernels that have it."""
    chain = [*CHAIN_COLUMNS, "via", "level", "why_none"]
    votes = (
        kernels.group_by("group", *chain, maintain_order=True)
        .agg(votes=pl.len(), spent=pl.col("dur_ns").sum())
        .sort("votes", descending=True, maintain_order=True)
    )
    groups = (
        kernels.group_by("group", maintain_order=True)
        .agg(
            *(_only(name) for name in ("role", "section", "ordinal", "normal")),
            kernel=pl.col("name").first(),
            count=pl.len(),
            total_ns=pl.col("dur_ns").sum(),
        )
        .sort("total_ns", descending=True, maintain_order=True)
    )
    by_group: dict[str, list[dict[str, Any]]] = {}
    for vote in votes.iter_rows(named=True):
        by_group.setdefault(repr(vote["group"]), []).append(vote)
    return [_row(group, by_group[repr(group["group"])], by, steps, total) for group in groups.iter_rows(named=True)]


def _only(name: str) -> pl.Expr:
    return pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)


def _row(group: dict[str, Any], votes: Sequence[dict[str, Any]], by: str, steps: int, total: int) -> SourceRow:
    best, *rest = votes
    modules: str | None = best["modules"]
    kernel = group["kernel"] if group["normal"] is not None else None
    model = _place(best["model_line"])
    return SourceRow(
        id=_id(group, by),
        kernel=kernel,
        short=short_name(kernel) if kernel else "several",
        per_step_us=group["total_ns"] / 1e3 / max(steps, 1),
        share=group["total_ns"] / total,
        module=modules,
        module_class=re.split(r"[/.]", modules)[-1] if modules else None,
        **_place(best["line"]),
        **{f"model_{name}": value for name, value in model.items()},
        compiled=best["compiled"] is True,
        reason=best["why_none"],
        agreement=best["votes"] / group["count"] if best["via"] is not None else None,
        others=[_other(vote, group["count"]) for vote in rest if vote["via"] is not None][:_OTHERS],
        **{name: group[name] for name in ("role", "section", "ordinal", "count")},
        **{name: best[name] for name in ("op", "via", "level")},
    )


def _place(frame: str | None) -> dict[str, Any]:
    """Return file, line and function of a frame's text."""
    read = frame_of(frame or "")
    names = ("file", "line", "function")
    return {name: getattr(read, name) for name in names} if read else dict.fromkeys(names)


def _id(group: dict[str, Any], by: str) -> str:
    """Name a row: its place in the step and, of several kernels there, a digest of the name; else what it groups by."""
    values = ["" if value is None else str(value) for value in group["group"].values()]
    if by == "kernel":
        values[-1] = hashlib.sha256(values[-1].encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return "/".join(values).strip("/") or "unknown"


def _other(vote: dict[str, Any], count: int) -> SourceLine:
    return SourceLine(**_place(vote["line"]), op=vote["op"], share=vote["votes"] / count)


def _mapping(known: Sources, rows: Sequence[SourceRow]) -> SourceMapping | None:
    mapping = known.mapping
    if mapping is None:
        return None
    mapped = [row for row in rows if row.via == "position" and row.agreement is not None]
    time = sum(row.per_step_us for row in mapped)
    agreed = sum(row.per_step_us * (row.agreement or 0) for row in mapped) / time if time else 1.0
    sure = None if mapping.confidence is None else mapping.confidence * agreed
    return SourceMapping(
        source=mapping.source,
        step=mapping.step,
        phase=mapping.phase,
        blocks=mapping.blocks,
        confidence=sure,
        same_model=mapping.same_model,
        reason=mapping.reason,
    )


def _doubts(kernels: pl.DataFrame, mapping: SourceMapping | None, total: int) -> list[TraceWarning]:
    doubts = []
    if mapping is not None and mapping.confidence is not None and mapping.confidence < UNCERTAIN:
        text = f"sources by position are right with a confidence of {mapping.confidence:.2f}"
        doubts.append(TraceWarning("source_uncertain", text))
    for unknown in _UNKNOWN:
        own = kernels.filter(pl.col("why_none") == unknown.code.removeprefix("source_"))
        if own.height:
            text = f"the source of {percent(_time(own) / total)} of the kernel time is unknown: {unknown.message}"
            doubts.append(TraceWarning(unknown.code, text, count=own.height))
    return doubts


def read_notes(path: Path) -> dict[int, str]:
    """Read annotations of graph nodes: a JSON object of lists of objects by node, as PyTorch's notes are dumped.

    Raises:
        TraceError: the file is not such JSON.
    """
    if path.suffix in {".pkl", ".pickle", ".pt"}:
        raise TraceError(str(path), "pickles run code when they are read: dump the annotations as JSON")
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
        nodes = {int(node): own for node, own in loaded.items()}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise TraceError(str(path), "not a JSON object of annotations by graph node id") from error
    first = {node: own[0] if isinstance(own, list) and own else own for node, own in nodes.items()}
    named = {node: note_of(own) for node, own in first.items() if isinstance(own, dict)}
    return {node: note for node, note in named.items() if note is not None}
