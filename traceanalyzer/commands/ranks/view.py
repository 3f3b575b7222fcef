"""The comparison of ranks as the contract's JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import polars as pl
from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.commands.ranks.hta import SecondOpinion
from traceanalyzer.commands.ranks.rank_findings import Finding, findings, layout_words
from traceanalyzer.commands.ranks.waiting import bus_gbps
from traceanalyzer.hardware import recognise
from traceanalyzer.problems import TraceWarning
from traceanalyzer.show.terminal import table
from traceanalyzer.trace import TraceSet
from traceanalyzer.wording import (
    duration,
    duration_us,
    percent,
    plural,
    us,
    visible,
)

Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings and rows."""

SCHEMA = "traceanalyzer/ranks/1"
CSV_COLUMNS = (
    "rank",
    "dp",
    "pp",
    "tp",
    "stage",
    "layers",
    "span_us",
    "compute_us",
    "comm_us",
    "exposed_comm_us",
    "exposed_copy_us",
    "idle_us",
    "wait_us",
    "steps",
)


def document(
    traces: TraceSet, found: RankComparison, warnings: Iterable[TraceWarning], hta: SecondOpinion | None = None
) -> dict[str, Any]:
    """Return the JSON document of ``ranks``."""
    return {
        "schema": SCHEMA,
        "ranks": found.ranks,
        "missing": list(found.membership.missing),
        "world_size": found.membership.world_size,
        "layout": {axis: found.layout.sizes.get(axis) for axis in ("tp", "pp", "dp", "ep")},
        "layout_source": found.layout.source,
        "table": [_place(found, traces, rank) for rank in found.ranks],
        "skipped": [asdict(source) for source in traces.sources if source.skipped],
        "clocks": {
            "method": found.clocks.method,
            "residual_us": us(found.clocks.residual_ns),
            "calls": found.clocks.calls,
            "offsets_us": {str(rank): us(offset) for rank, offset in found.clocks.offsets_ns.items()},
            "unaligned": list(found.clocks.unaligned),
        },
        "collectives": collectives(found),
        "causes": [
            {
                "ranks": json.loads(row["group"]),
                "late_rank": row["rank"],
                "kernel": row["name"],
                "role": row["role"],
                "calls": row["calls"],
                "extra_us": us(row["extra_ns"]),
                "own_us": us(row["own_ns"]),
                "others_us": us(row["others_ns"]),
                "wait_us": us(row["wait_ns"]),
            }
            for row in found.causes.iter_rows(named=True)
        ],
        "unpaired": [
            {"kind": row["kind"], "ranks": json.loads(row["group"]), "rank": row["rank"], "calls": row["calls"]}
            for row in found.unpaired.iter_rows(named=True)
        ],
        "per_rank": per_rank(found),
        "experts": _experts(found),
        "pipeline": _pipeline(found),
        "dummy_steps": [
            {
                "rank": row["rank"],
                "steps": row["steps"],
                "dummy_steps": row["dummy_steps"],
                "dummy_us": us(row["dummy_ns"]),
            }
            for row in found.dummies.iter_rows(named=True)
        ],
        "findings": [_finding(finding) for finding in findings(found)],
        "hta": None if hta is None else hta.to_dict(),
        "warnings": [warning.to_dict() for warning in warnings],
    }


def per_rank(found: RankComparison) -> list[dict[str, Any]]:
    """Return the rows of the table of ranks."""
    waited = {row["rank"]: row for row in found.per_step.iter_rows(named=True)}
    waiting = dict(found.calls.group_by("rank").agg(pl.col("wait_ns").sum()).iter_rows())
    rows = []
    for row in found.per_rank.iter_rows(named=True):
        place = found.layout.coordinates.get(row["rank"], {})
        rows.append(
            {
                "rank": row["rank"],
                "dp": place.get("dp"),
                "pp": place.get("pp"),
                "tp": place.get("tp"),
                "compute_us": us(row["compute_ns"]),
                "comm_us": us(row["comm_ns"]),
                "exposed_comm_us": us(row["exposed_comm_ns"]),
                "exposed_copy_us": us(row["exposed_copy_ns"]),
                "idle_us": us(row["idle_ns"]),
                "span_us": us(row["span_ns"]),
                "wait_us": us(waiting.get(row["rank"])),
                "stage": row["stage"],
                "layers": row["layers"],
                "steps": waited[row["rank"]]["steps"],
            }
        )
    return rows


def _place(found: RankComparison, traces: TraceSet, rank: int) -> dict[str, Any]:
    place = found.layout.coordinates.get(rank, {})
    member = next(member for member in found.members if member.rank == rank)
    parallel = member.trace.metadata.parallel or {}
    return {
        "rank": rank,
        "dp": place.get("dp"),
        "pp": place.get("pp"),
        "tp": place.get("tp"),
        "ep": parallel.get("ep"),
        "rank_source": member.trace.metadata.rank_source,
        "source": member.path,
        "duplicates": sum(trace.rank == rank for trace in traces) - 1 if len(traces) > 1 else 0,
    }


def collectives(found: RankComparison) -> list[dict[str, Any]]:
    """Return the rows of the table of collectives, times in µs: those with most waiting first."""
    rows = [_collective(found, row) for row in found.collectives.iter_rows(named=True)]
    return sorted(rows, key=lambda row: -sum(row["wait_us"].values()))


def most_often_late(row: Mapping[str, Any]) -> str | None:
    """Say which rank was last in most calls of a row of ``collectives``, with its share of them; null for none."""
    late = max(row["late_rank"], key=row["late_rank"].__getitem__, default=None)
    return None if late is None else f"rank {late} ({percent(row['late_rank'][late] / row['calls'])})"


def _collective(found: RankComparison, row: dict[str, Any]) -> dict[str, Any]:
    own = found.waits.filter(pl.col("kind") == row["kind"], pl.col("group") == row["group"])
    bandwidth = bus_gbps(row["kind"], row["group"], row["known_bytes"], row["known_ns"])
    peak = link_gbps(found)
    return {
        "kind": row["kind"],
        "ranks": json.loads(row["group"]),
        "basis": found.bases.get(row["group"]),
        "calls": row["calls"],
        "transfer_us": us(row["transfer_ns"]),
        "wait_us": {str(rank): us(ns) for rank, ns in own.select("rank", "wait_ns").iter_rows()},
        "late_rank": {str(rank): n for rank, n in own.select("rank", "late_calls").iter_rows() if n},
        "caused_wait_us": {str(rank): us(ns) for rank, ns in own.select("rank", "caused_ns").iter_rows() if ns},
        "bytes": row["known_bytes"] or None,
        "bus_gbps": bandwidth,
        "link_gbps": peak,
        "link_share": bandwidth / peak if bandwidth is not None and peak else None,
    }


def link_gbps(found: RankComparison) -> float | None:
    """Peak of the link between the GPUs in one direction, GB/s; null where it is unknown or the ranks differ."""
    peaks = set()
    for member in found.members:
        gpu = recognise(member.trace.metadata.device_properties, member.device).gpu
        peaks.add(gpu.link_gbps if gpu else None)
    return peaks.pop() if len(peaks) == 1 else None


def _experts(found: RankComparison) -> dict[str, Any] | None:
    experts = found.experts
    if experts is None:
        return None
    waited = experts.combine_wait_ns
    return {
        "per_rank_us": {str(rank): us(ns) for rank, ns in experts.per_rank_ns.items()},
        "max_over_mean": experts.max_over_mean,
        "coefficient_of_variation": experts.coefficient_of_variation,
        "combine_wait_us": None if waited is None else {str(rank): us(ns) for rank, ns in waited.items()},
        "expert_parallel": experts.parallel,
    }


def _pipeline(found: RankComparison) -> dict[str, Any] | None:
    pipeline = found.pipeline
    if pipeline is None:
        return None
    return {
        "bubble_share": pipeline.bubble_share,
        "layers_per_stage": list(pipeline.layers),
        "layers_total": pipeline.total_layers,
        "cycles": pipeline.steps,
        "stages": [
            {
                "stage": row["stage"],
                "ranks": row["ranks"],
                "layers": row["layers"],
                "cycle_us": us(row["cycle_ns"]),
                "work_us": us(row["work_ns"]),
                "transfer_us": us(row["transfer_ns"]),
                "wait_us": us(row["wait_ns"]),
                "idle_us": us(row["idle_ns"]),
                "bubble_share": row["bubble_share"],
            }
            for row in pipeline.stages.iter_rows(named=True)
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "worth_us": us(finding.worth_ns),
        "worth_share": finding.worth_share,
    }


def render(traces: TraceSet, found: RankComparison, limit: int, width: int, hta: SecondOpinion | None = None) -> Group:
    """Return the verdict in words, then ranks, collectives and causes."""
    clocks = found.clocks
    left = "" if clocks.residual_ns is None else f", ends of a call {duration(clocks.residual_ns)} apart"
    source = f" ({found.layout.source})" if found.layout.source else ""
    heading = (
        f"{plural(len(found.members), 'rank')}, layout {layout_words(found.layout)}{source}; "
        f"clocks by {clocks.method}{left}"
    )
    parts: list[Any] = [Text(heading, style="bold")]
    parts += [Text(f"  {visible(finding.message)}") for finding in findings(found)]
    skipped = [source for source in traces.sources if source.skipped]
    parts += [Text(f"  skipped {visible(source.path)}: {source.skipped}", style="dim") for source in skipped[:4]]
    if len(skipped) > 4:
        parts.append(Text(f"  and {plural(len(skipped) - 4, 'more file')} without a trace", style="dim"))
    parts += _table(_rank_rows(found), "rank", limit, width)
    if found.collectives.height:
        parts += _table(_collective_rows(found), "collective", limit, width)
    if found.causes.height:
        parts += _table(_cause_rows(found), "cause", limit, width, name_column=2)
    if hta is not None:
        parts += [Text(), Text("HolisticTraceAnalysis", style="bold"), *(Text(f"  {note}") for note in hta.notes)]
        for columns, rows in hta.tables():
            parts += [Text(), table(columns, rows[: limit or len(rows)], name_column=None, width=width)]
    return Group(*parts)


def _table(contents: Table, noun: str, limit: int, width: int, name_column: int | None = None) -> list[Any]:
    """The first rows, and how many more there are."""
    columns, rows = contents
    shown = table(columns, rows[: limit or len(rows)], name_column=name_column, width=width)
    left = len(rows) - limit if limit else 0
    note = [Text(f"  and {plural(left, f'more {noun}')} (--limit 0 shows all)")] if left > 0 else []
    return [Text(), shown, *note]


def _rank_rows(found: RankComparison) -> Table:
    axes = [axis for axis in ("dp", "pp", "tp") if found.layout.size(axis) > 1]
    columns = ("rank", *axes, "layers", "steps", "compute", "exposed comm", "waiting", "idle", "span")
    rows: list[tuple[str, ...]] = [
        (
            str(row["rank"]),
            *(_text(row[axis]) for axis in axes),
            _text(row["layers"]),
            str(row["steps"]),
            duration_us(row["compute_us"]),
            duration_us(row["exposed_comm_us"]),
            duration_us(row["wait_us"]),
            duration_us(row["idle_us"]),
            duration_us(row["span_us"]),
        )
        for row in per_rank(found)
    ]
    return columns, rows


def _collective_rows(found: RankComparison) -> Table:
    columns = ("collective", "ranks", "calls", "transfer", "waiting", "last in most calls", "bus GB/s")
    rows: list[tuple[str, ...]] = [
        (
            row["kind"],
            ranks_in_short(row["ranks"]),
            f"{row['calls']:,}",
            duration_us(row["transfer_us"]),
            duration_us(sum(row["wait_us"].values())),
            most_often_late(row) or "-",
            "n/a" if row["bus_gbps"] is None else f"{row['bus_gbps']:.1f}",
        )
        for row in collectives(found)
    ]
    return columns, rows


def _cause_rows(found: RankComparison) -> Table:
    columns = ("late rank", "role", "kernel", "calls", "longer by", "others waited")
    rows: list[tuple[str, ...]] = [
        (
            str(row["rank"]),
            row["role"] or "-",
            row["name"] or "(idle: launched late)",
            str(row["calls"]),
            duration(row["extra_ns"]),
            duration(row["wait_ns"]),
        )
        for row in found.causes.iter_rows(named=True)
    ]
    return columns, rows


def ranks_in_short(ranks: list[int]) -> str:
    """The ranks of a group in words, of many only the first and the last."""
    return ", ".join(map(str, ranks)) if len(ranks) <= 4 else f"{ranks[0]}, {ranks[1]}, ... {ranks[-1]} ({len(ranks)})"


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
