"""The overview of traces, as a JSON document and as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.ingest.compute import Timeline, workload_of
from traceanalyzer.commands.ingest.result import (
    SummaryDocument,
    SummaryKernelsWithoutStep,
    SummaryParallel,
    SummaryStep,
    SummaryTimeline,
    SummaryTopKernel,
)
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment.passes import passes_in_words
from traceanalyzer.show.terminal import table
from traceanalyzer.trace import TraceSet
from traceanalyzer.wording import duration, percent, plural, visible
from traceanalyzer.words import LEAST_CERTAIN

TOP_KERNELS_SHOWN = 10
AXES = ("dp", "pp", "tp", "ep", "dcp")
"""Dimensions of a parallel layout that names of traces may hold."""


def document(
    traces: TraceSet, engine: str, timelines: Iterable[Timeline], warnings: Iterable[TraceWarning]
) -> SummaryDocument:
    """Return the JSON document of ``ingest``."""
    warnings, shown, workload = list(warnings), list(timelines), workload_of(traces)
    return part_of(
        SummaryDocument,
        traces,
        status="warning" if warnings else "ok",
        warnings=warnings,
        engine=engine,
        timelines=[_timeline(timeline) for timeline in shown],
        workload=workload.kind,
        workload_basis=list(workload.basis),
        findings=list({finding.message: finding for t in shown for finding in t.opening}.values()),
    )


def _timeline(t: Timeline) -> SummaryTimeline:
    parallel = None if t.parallel is None else part_of(SummaryParallel, dict.fromkeys(AXES) | t.parallel)
    return part_of(
        SummaryTimeline,
        t,
        device_name=t.device_name.name,
        device_name_source=t.device_name.source,
        parallel=parallel,
        kernels_without_step=SummaryKernelsWithoutStep(count=t.outside_kernels, sum_us=t.outside_sum_ns / 1e3),
        top_kernels=rows_of(SummaryTopKernel, t.top_kernels.head(TOP_KERNELS_SHOWN)),
        steps=[part_of(SummaryStep, row) for row in t.steps.rename({"step": "index"}).iter_rows(named=True)],
    )


def effort_line(traces: TraceSet) -> str:
    """Say what reading took, for a person: bytes of text, time, speed, peak memory, worker processes."""
    effort = traces.effort
    if effort is None:
        return "reading: not measured"
    if not effort.text_bytes:
        return (
            f"read from the cache or a store in {effort.seconds:.2f} s; peak memory {effort.peak_bytes / 1e6:,.0f} MB"
        )
    speed = effort.text_bytes / 1e6 / effort.seconds if effort.seconds else 0.0
    by = plural(effort.processes, "worker process") if effort.processes else "one process"
    return (
        f"read {effort.text_bytes / 1e6:,.1f} MB of JSON in {effort.seconds:.2f} s ({speed:,.0f} MB/s) with {by}; "
        f"peak memory {effort.peak_bytes / 1e6:,.0f} MB"
    )


ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "atom": "ATOM", "transformers": "Transformers"}


NEXT = ("hotspots", "blocks", "roofline", "idle")


def _argument(path: str) -> str:
    return visible(shlex.quote(path))


def render(engine: str, timelines: Iterable[Timeline], console: Console, next_path: str) -> Group:
    """Return the overview as text: a section per device, then what to run next.

    Commands are one per line, also beyond the width, so that they can be pasted: print without cropping.
    """
    parts: list[Any] = []
    shown = list(timelines)
    said: set[str] = set()
    for timeline in shown:
        first = [finding.message for finding in timeline.opening if finding.message not in said]
        said.update(first)
        parts += [
            *(Text(message, style="bold") for message in first),
            *_section(timeline, engine, console.width),
            Text(),
        ]
    if not shown:
        return Group(Text("No kernels to analyse; the warnings say why.", style="bold"))
    parts.append(Text("Next", style="bold"))
    lines = _next(shown, _argument(next_path))
    return Group(*parts, *(Text(f"  traceanalyzer {line}", no_wrap=True, overflow="ignore") for line in lines))


def _next(timelines: Sequence[Timeline], path: str) -> list[str]:
    """Command lines that go on from here; of several ranks most commands look at one, which has to be named."""
    ranks = sorted({t.rank for t in timelines if t.rank is not None})
    several = len(ranks) > 1
    shown = [t for t in timelines if t.rank == ranks[0]] if several else timelines
    rank = f" --rank {ranks[0]}" if several else ""
    lines = [f"{command} {path}{rank}{_phase_option(shown) if command == 'hotspots' else ''}" for command in NEXT]
    return [f"ranks {path}", *lines] if several else lines


def _phase_option(timelines: Sequence[Timeline]) -> str:
    """Decode steps are what most come for; without any, all steps are looked at together."""
    decodes = any((t.steps.filter("complete")["phase"] == "decode").any() for t in timelines)
    return " --phase decode" if decodes else ""


def _section(t: Timeline, engine: str, width: int) -> list[Any]:
    where = ["SYNTHETIC, generated and not recorded"] if t.synthetic else []
    if t.rank is not None:
        where.append(f"rank {t.rank}")
    where.append("CPU (compute ops stand in for kernels)" if t.device is None else _device(t))
    title = Text(" · ".join([ENGINE_NAMES.get(engine, "engine unknown"), *where]), style="bold")
    unit = "compute ops" if t.device is None else "kernels"
    busy_share = t.busy_ns / t.span_ns if t.span_ns else None
    facts = [
        ("steps", _steps_line(t)),
        ("blocks", _blocks_line(t.steps)),
        (unit, f"{t.kernels:,} in {duration(t.kernel_sum_ns)}; {_graphs(t)}"),
        ("busy", f"{duration(t.busy_ns)} of {duration(t.span_ns)} ({percent(busy_share)}), {_rest(t)}"),
    ]
    if t.memcpy_ns or t.memset_ns:
        facts.append(("copies", f"{duration(t.memcpy_ns)}, memsets {duration(t.memset_ns)}"))
    if t.comm_sum_ns:
        facts.append(("comm", f"{duration(t.comm_sum_ns)}, of which {duration(t.comm_exposed_ns)} exposed"))
    if t.outside_kernels:
        facts.append(("outside", f"{t.outside_kernels:,} {unit} of no step, {duration(t.outside_sum_ns)}"))
    grid = Table.grid(padding=(0, 2, 0, 2))
    for name, value in facts:
        grid.add_row(Text(f"  {name}"), Text(value))
    rows = [
        (row["name"], f"{row['count']:,}", duration(row["total_ns"]), percent(row["share"]))
        for row in t.top_kernels.head(TOP_KERNELS_SHOWN).iter_rows(named=True)
    ]
    heading = "top compute ops" if t.device is None else "top kernels"
    return [title, grid, Text(), table((heading, "count", "total", "share"), rows, name_column=0, width=width)]


def _rest(t: Timeline) -> str:
    rest = duration(t.span_ns - t.busy_ns)
    return f"{rest} between compute ops (dispatch, Python, waiting)" if t.device is None else f"idle {rest}"


def _device(t: Timeline) -> str:
    name = t.device_name.name or "GPU of unknown model"
    how = " (recognised by its size)" if t.device_name.source == "fingerprint" else ""
    return f"{visible(name)}{how} · device {t.device}"


def _graphs(t: Timeline) -> str:
    return plural(t.graph_launches, "graph launch") if t.graph_launches else "no graph launches"


def _steps_line(t: Timeline) -> str:
    if t.steps.is_empty():
        return "none found"
    complete = t.steps.filter("complete")
    phases = complete.group_by("phase", maintain_order=True).agg(
        count=pl.len(), span=pl.col("span_ns").median(), requests=pl.col("requests").unique().sort()
    )
    parts = []
    for row in phases.iter_rows(named=True):
        batches = [str(r) for r in row["requests"] if r is not None]
        batch = f" of batch {', '.join(batches[:4])}{' ...' if len(batches) > 4 else ''}" if batches else ""
        phase = "" if row["phase"] == "unknown" else f"{row['phase']} "
        parts.append(f"{plural(row['count'], phase + 'step')}{batch}, median {duration(row['span'])}")
    partial = t.steps.height - complete.height
    if partial:
        parts.append(f"{plural(partial, 'partial step')} (left out of averages)")
    return "; ".join(parts) + f" [{t.step_source}]"


def _blocks_line(steps: pl.DataFrame) -> str:
    complete = steps.filter("complete", pl.col("phase") != "dummy")
    counts = complete["blocks"].drop_nulls().unique().sort().to_list()
    if not counts or counts == [0]:
        return "none found"
    lowest = complete["confidence"].min()
    sure = "" if not isinstance(lowest, float) else f" (confidence {lowest:.2f})"
    shown = " or ".join(str(count) for count in counts)
    if isinstance(lowest, float) and lowest < LEAST_CERTAIN:
        return f"{shown} parts per step that repeat, probably not transformer blocks{sure}"
    beside = passes_in_words(complete)
    told = f"; {beside}" if beside else ""
    return f"{shown} transformer blocks per step{sure}{told}"
