"""The comparison of ranks as a JSON document and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.text import Text

from traceanalyzer.commands.ranks import result
from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.commands.ranks.rank_findings import findings, layout_words
from traceanalyzer.commands.ranks.waiting import bus_gbps
from traceanalyzer.declare import Part, columns, part_of, rows_of
from traceanalyzer.hardware import recognise
from traceanalyzer.problems import TraceWarning
from traceanalyzer.show.part_table import part_table
from traceanalyzer.show.source_file import SourceFile
from traceanalyzer.show.terminal import table
from traceanalyzer.trace import TraceSet
from traceanalyzer.wording import duration, duration_us, percent, plural, visible

AXES = ("dp", "pp", "tp")
TIMES = ("compute_us", "exposed_comm_us", "wait_us", "idle_us", "span_us")
UNKNOWN = dict.fromkeys((*AXES, "layers", "role"), "-") | {"kernel": "(idle: launched late)"}
SKIPPED_SHOWN = 4
"""Files without a trace that are named."""


def document(
    traces: TraceSet,
    comparison: RankComparison,
    warnings: Iterable[TraceWarning],
    opinion: result.SecondOpinion | None = None,
) -> result.RanksDocument:
    """Return the JSON document of ``ranks``."""
    clocks, layout = comparison.clocks, comparison.layout
    return result.RanksDocument(
        ranks=comparison.ranks,
        missing=list(comparison.membership.missing),
        world_size=comparison.membership.world_size,
        layout=result.LayoutSizes(**{axis: layout.sizes.get(axis) for axis in ("tp", "pp", "dp", "ep")}),
        layout_source=layout.source,
        table=[_place(comparison, traces, member) for member in comparison.members],
        skipped=[part_of(SourceFile, source) for source in traces.sources if source.skipped],
        clocks=part_of(result.ClockAlignment, clocks, offsets_us=_by_rank(clocks.offsets_ns)),
        collectives=collectives(comparison),
        causes=late_causes(comparison),
        unpaired=rows_of(result.UnpairedCalls, _with_ranks(comparison.unpaired)),
        per_rank=per_rank(comparison),
        experts=_experts(comparison),
        pipeline=_pipeline(comparison),
        dummy_steps=rows_of(result.RankDummies, comparison.dummies),
        findings=list(findings(comparison)),
        hta=opinion,
        warnings=list(warnings),
    )


def _by_rank(times_ns: Mapping[int, int]) -> dict[str, float]:
    """Return times of ranks in µs, as JSON has them."""
    return {str(rank): ns / 1000 for rank, ns in times_ns.items()}


def _with_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the ranks of ``group`` as a list."""
    return frame.with_columns(ranks=pl.col("group").cast(pl.String).str.json_decode(pl.List(pl.Int64)))


def _place(comparison: RankComparison, traces: TraceSet, member: Member) -> result.RankPlace:
    place = comparison.layout.coordinates.get(member.rank, {})
    metadata = member.trace.metadata
    return result.RankPlace(
        rank=member.rank,
        **{axis: place.get(axis) for axis in AXES},
        ep=(metadata.parallel or {}).get("ep"),
        rank_source=metadata.rank_source,
        source=member.path,
        duplicates=sum(trace.rank == member.rank for trace in traces) - 1 if len(traces) > 1 else 0,
    )


def per_rank(comparison: RankComparison) -> list[result.RankTime]:
    """Return how each rank spends its time."""
    steps = dict(comparison.per_step.select("rank", "steps").iter_rows())
    waiting = dict(comparison.calls.group_by("rank").agg(pl.col("wait_ns").sum()).iter_rows())
    rows = []
    for row in comparison.per_rank.iter_rows(named=True):
        place = comparison.layout.coordinates.get(row["rank"], {})
        known = {axis: place.get(axis) for axis in AXES} | {"steps": steps[row["rank"]]}
        rows.append(part_of(result.RankTime, {**row, **known, "wait_ns": waiting.get(row["rank"])}))
    return rows


def late_causes(comparison: RankComparison) -> list[result.LateCause]:
    """Return why ranks arrived late, largest first."""
    return rows_of(result.LateCause, _with_ranks(comparison.causes).rename({"rank": "late_rank", "name": "kernel"}))


def collectives(comparison: RankComparison) -> list[result.CollectiveCalls]:
    """Return the collectives by kind and group, those with the most waiting first."""
    peak = link_gbps(comparison)
    rows = [_collective(comparison, row, peak) for row in comparison.collectives.iter_rows(named=True)]
    return sorted(rows, key=lambda row: -sum(row.wait_us.values()))


def _collective(comparison: RankComparison, row: dict[str, Any], peak: float | None) -> result.CollectiveCalls:
    own = comparison.waits.filter(pl.col("kind") == row["kind"], pl.col("group") == row["group"])
    late = own.filter(pl.col("late_calls") > 0)
    caused = own.filter(pl.col("caused_ns") > 0)
    bandwidth = bus_gbps(row["kind"], row["group"], row["known_bytes"], row["known_ns"])
    return part_of(
        result.CollectiveCalls,
        row,
        ranks=json.loads(row["group"]),
        basis=comparison.bases.get(row["group"]),
        wait_us=_by_rank(dict(own.select("rank", "wait_ns").iter_rows())),
        late_rank={str(rank): calls for rank, calls in late.select("rank", "late_calls").iter_rows()},
        caused_wait_us=_by_rank(dict(caused.select("rank", "caused_ns").iter_rows())),
        bytes=row["known_bytes"] or None,
        bus_gbps=bandwidth,
        link_gbps=peak,
        link_share=bandwidth / peak if bandwidth is not None and peak else None,
    )


def most_often_late(late_calls: Mapping[str, int], calls: int) -> str | None:
    """Say which rank was last in most of the calls, with its share of them; None where none was late."""
    late = max(late_calls, key=late_calls.__getitem__, default=None)
    return None if late is None else f"rank {late} ({percent(late_calls[late] / calls)})"


def link_gbps(comparison: RankComparison) -> float | None:
    """Peak of the link between the GPUs in one direction, GB/s; None where it is unknown or the ranks differ."""
    peaks = set()
    for member in comparison.members:
        gpu = recognise(member.trace.metadata.device_properties, member.device).gpu
        peaks.add(gpu.link_gbps if gpu else None)
    return peaks.pop() if len(peaks) == 1 else None


def _experts(comparison: RankComparison) -> result.ExpertLoad | None:
    experts = comparison.experts
    if experts is None:
        return None
    waited = experts.combine_wait_ns
    return part_of(
        result.ExpertLoad,
        experts,
        per_rank_us=_by_rank(experts.per_rank_ns),
        combine_wait_us=None if waited is None else _by_rank(waited),
        expert_parallel=experts.parallel,
    )


def _pipeline(comparison: RankComparison) -> result.PipelineTimes | None:
    pipeline = comparison.pipeline
    if pipeline is None:
        return None
    return result.PipelineTimes(
        bubble_share=pipeline.bubble_share,
        layers_per_stage=list(pipeline.layers),
        layers_total=pipeline.total_layers,
        cycles=pipeline.steps,
        stages=rows_of(result.PipelineStage, pipeline.stages),
    )


def render(
    traces: TraceSet, comparison: RankComparison, limit: int, width: int, opinion: result.SecondOpinion | None = None
) -> Group:
    """Return the findings, then ranks, collectives and causes; ``limit`` rows of each table, 0 for all."""
    parts: list[RenderableType] = [Text(_heading(comparison), style="bold")]
    parts += [Text(f"  {visible(finding.message)}") for finding in findings(comparison)]
    skipped = [source for source in traces.sources if source.skipped]
    parts += [
        Text(f"  skipped {visible(source.path)}: {source.skipped}", style="dim") for source in skipped[:SKIPPED_SHOWN]
    ]
    if (more := len(skipped) - SKIPPED_SHOWN) > 0:
        parts.append(Text(f"  and {plural(more, 'more file')} without a trace", style="dim"))
    axes = [axis for axis in AXES if comparison.layout.size(axis) > 1]
    parts += _parts(per_rank(comparison), ("rank", *axes, "layers", "steps", *TIMES), "rank", limit, width)
    parts += _collectives_table(collectives(comparison), limit, width)
    named = ("kernel", "role", "late_rank", "calls", "extra_us", "wait_us")
    parts += _parts(late_causes(comparison), named, "cause", limit, width)
    if opinion is not None:
        parts += [Text(), Text("HolisticTraceAnalysis", style="bold"), *(Text(f"  {note}") for note in opinion.notes)]
        for rows in (opinion.temporal, opinion.overlap, opinion.idle, opinion.queue, opinion.critical_path):
            parts += _parts(
                rows, [column.name for column in columns(type(rows[0]))] if rows else (), "row", limit, width
            )
    return Group(*parts)


def _heading(comparison: RankComparison) -> str:
    """Say how many ranks there are, their layout, and how their clocks were aligned."""
    clocks, layout = comparison.clocks, comparison.layout
    source = f" ({layout.source})" if layout.source else ""
    left = "" if clocks.residual_ns is None else f", ends of a call {duration(clocks.residual_ns)} apart"
    aligned = f"; clocks: {clocks.method}{left}" if len(comparison.members) > 1 else ""
    return f"{plural(len(comparison.members), 'rank')}, layout {layout_words(layout)}{source}{aligned}"


def _parts(rows: Sequence[Part], names: Sequence[str], noun: str, limit: int, width: int) -> list[RenderableType]:
    """Return a table of the first rows, if there are any, and how many more there are."""
    if not rows:
        return []
    shown = part_table(rows[: limit or None], names, width=width, unknown=UNKNOWN)
    return [Text(), shown, *_rest(len(rows), noun, limit)]


def _rest(count: int, noun: str, limit: int) -> list[RenderableType]:
    left = count - limit if limit else 0
    return [Text(f"  and {plural(left, f'more {noun}')} (--limit 0 shows all)")] if left > 0 else []


def _collectives_table(rows: Sequence[result.CollectiveCalls], limit: int, width: int) -> list[RenderableType]:
    if not rows:
        return []
    headings = ("collective", "ranks", "calls", "transfer", "waiting", "last in most calls", "bus GB/s")
    cells = [
        (
            row.kind,
            ranks_in_short(row.ranks),
            f"{row.calls:,}",
            duration_us(row.transfer_us),
            duration_us(sum(row.wait_us.values())),
            most_often_late(row.late_rank, row.calls) or "-",
            "n/a" if row.bus_gbps is None else f"{row.bus_gbps:.1f}",
        )
        for row in rows[: limit or None]
    ]
    return [Text(), table(headings, cells, name_column=None, width=width), *_rest(len(rows), "collective", limit)]


def ranks_in_short(ranks: Sequence[int]) -> str:
    """The ranks of a group in words, of many only the first and the last."""
    return ", ".join(map(str, ranks)) if len(ranks) <= 4 else f"{ranks[0]}, {ranks[1]}, ... {ranks[-1]} ({len(ranks)})"
