"""The roofline as a JSON document, as rows and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.roofline.result import (
    AssumedStep,
    AssumedTokenRate,
    AssumedTokenTime,
    RooflineAssumption,
    RooflineDocument,
    RooflineGpu,
    RooflineModel,
    RooflineRow,
    RooflineWhatIf,
)
from traceanalyzer.declare import columns, part_of
from traceanalyzer.roofline import Roofline, Row, WhatIf
from traceanalyzer.segment.opening import only_opening, without_opening
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import cut_middle, duration, percent, plural, step_of, us, visible

SHOWN = (
    *("role", "count", "measured_us", "share", "intensity", "gbps", "tflops"),
    *("bound", "floor_us", "roof_share", "headroom_us"),
)
"""Columns of the table; the first names the row."""

LEAST_NEEDED = ("tflops", "gbps", "intensity", "count", "share", "floor_us", "roof_share", "headroom_us", "bound")
"""Columns that a narrow terminal does without, the first to go first."""


def document(roofline: Roofline, assumed: WhatIf | None = None) -> RooflineDocument:
    """Return the JSON document of ``roofline``; ``assumed`` is the step under the user's assumptions."""
    model = {"name": roofline.model.name if roofline.model else None, "source": roofline.model_source}
    return part_of(
        RooflineDocument,
        roofline,
        gpu=_gpu(roofline),
        model=part_of(RooflineModel, model),
        step_us=us(roofline.span_ns),
        latency_us=us(roofline.latency.ns),
        rows=rows_of_roofline(roofline),
        findings=list(roofline.findings),
        what_if=_what_if(assumed) if assumed else None,
    )


def _gpu(roofline: Roofline) -> RooflineGpu:
    ceilings, device = roofline.ceilings, roofline.device
    if ceilings is None:
        nothing: dict[str, Any] = {
            "peak_tflops": {},
            "bandwidth_gbps": None,
            "achievable_tflops": {},
            "achievable_gbps": None,
        }
        return part_of(RooflineGpu, device, **nothing)
    reached = {dtype: ceilings.achievable_tflops(dtype) for dtype in ceilings.gpu.peak_tflops}
    return part_of(
        RooflineGpu,
        ceilings.gpu,
        source=device.source,
        achievable_tflops={dtype: value for dtype, value in reached.items() if value is not None},
        achievable_gbps=ceilings.gbps,
    )


def rows_of_roofline(roofline: Roofline) -> list[RooflineRow]:
    """Return the rows as the document and CSV hold them."""
    return [
        part_of(
            RooflineRow,
            row,
            part=row.part or None,
            kernels=list(row.names),
            count=int(row.count) if row.count.is_integer() else row.count,
            share=row.measured_ns / roofline.measured_ns if roofline.measured_ns else None,
        )
        for row in roofline.rows
    ]


def _what_if(assumed: WhatIf) -> RooflineWhatIf:
    return RooflineWhatIf(
        assumptions=[
            part_of(
                RooflineAssumption,
                effect,
                role=effect.assumption.role,
                kind=effect.assumption.kind,
                share=effect.assumption.share,
            )
            for effect in assumed.effects
        ],
        step_us=AssumedStep(before=us(assumed.step_before_ns), after=us(assumed.step_after_ns)),
        tpot_us=AssumedTokenTime(before=us(assumed.tpot_before_ns), after=us(assumed.tpot_after_ns)),
        tokens_per_s=AssumedTokenRate(before=assumed.tokens_before, after=assumed.tokens_after),
    )


def render(roofline: Roofline, assumed: WhatIf | None, limit: int, width: int) -> Group:
    """Return the roofline as text: the ``limit`` rows with most time, what they come to, findings, what it rests on."""
    shown, rest = roofline.rows[:limit], roofline.rows[limit:]
    lines = [*(finding.message for finding in only_opening(roofline.findings)), *_title(roofline)]
    parts: list[Any] = [*(Text(visible(line), style="bold") for line in lines), Text()]
    parts += _table(roofline, shown, width)
    if rest:
        left = duration(sum(row.measured_ns for row in rest))
        parts.append(Text(f"  and {plural(len(rest), 'more row')} with {left} (--limit 0 shows all)"))
    parts += [Text(line) for line in _remarks(roofline, shown)]
    if assumed:
        parts += [Text(), *_what_if_lines(assumed)]
    parts += [Text(), *(Text(f"  {visible(line)}", style="dim") for line in roofline.basis)]
    for finding in without_opening(roofline.findings):
        parts += [Text(), Text(visible(finding.message))]
    return Group(*parts)


def _table(roofline: Roofline, rows: Sequence[Row], width: int) -> list[Any]:
    declared = {column.name: column.heading for column in columns(RooflineRow)}
    headings = ["work", *(declared[name] for name in SHOWN[1:])]
    cells = [_cells(row, roofline) for row in rows]
    spare = [SHOWN.index(name) for name in LEAST_NEEDED]
    shown = table(headings, cells, name_column=0, width=width, shorten=cut_middle, spare=spare)
    kept = {str(column.header) for column in shown.columns}
    missing = [heading for heading in headings if heading not in kept]
    return [shown, *([Text(f"  no room for {', '.join(missing)}: --csv has them")] if missing else [])]


def _cells(row: Row, roofline: Roofline) -> tuple[str, ...]:
    """The cells of SHOWN, in units that need no unit beside the figure."""
    headroom, share = row.headroom_ns, row.roof_share
    return (
        row.label,
        f"{row.count:,.4g}",
        _us(row.measured_ns),
        f"{100 * row.measured_ns / roofline.measured_ns:.1f}" if roofline.measured_ns else "",
        _short(row.intensity),
        _short(row.gbps),
        _short(row.tflops),
        "comm" if row.bound == "communication" else row.bound,
        _us(row.floor_ns),
        "" if share is None else f"{share * 100:.1f}{'' if row.plausible else '!'}",
        "" if headroom is None else f"{_us(headroom)}{'*' if row.redundant else ''}",
    )


def _remarks(roofline: Roofline, shown: Sequence[Row]) -> list[str]:
    """What is below the table: copies, and what its signs mean."""
    lines = []
    if roofline.copies_ns:
        lines.append(f"  besides kernels: copies and memsets, {duration(roofline.copies_ns)} per step")
    mean = f" (mean of {roofline.steps:,})" if roofline.steps > 1 else ""
    lines.append(f"  n, µs, floor and headroom are per step{mean}; headroom: time above floor and launch latency")
    if any(not row.plausible for row in roofline.rows):
        lines.append("  !  faster than its roof, which cannot be: see below")
    if any(row.redundant for row in shown):
        lines.append("  *  repeated work: not part of the step's floor")
    return lines


def _title(roofline: Roofline) -> list[str]:
    model = roofline.model.name if roofline.model else "unknown model"
    inferred = " (inferred)" if roofline.model_source == "inferred" else ""
    gpu = roofline.ceilings.gpu.name if roofline.ceilings else (roofline.device.name or "unknown GPU")
    first = f"{model}{inferred} on {gpu}, {step_of(roofline.phase)}: {duration(roofline.measured_ns)} of kernels"
    if roofline.floor_ns is None:
        return [first, "floor unknown"]
    reachable = (
        "" if roofline.reachable_ns is None else f", {duration(roofline.reachable_ns)} under the achievable roofs"
    )
    explained = f"{percent(roofline.explained_share)} of the kernel time explained"
    return [first, f"floor {duration(roofline.floor_ns)}{reachable}; {explained}"]


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1000:,.1f}"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _what_if_lines(assumed: WhatIf) -> list[Text]:
    lines = [
        f"If {effect.assumption.label} reached {percent(effect.assumption.share)} of its roof "
        f"(now {percent(effect.share_before)}): {duration(effect.before_ns)} -> {duration(effect.after_ns)}"
        for effect in assumed.effects
    ]
    lines.append(
        f"step {duration(assumed.step_before_ns)} -> {duration(assumed.step_after_ns)} "
        f"({_change(assumed.step_before_ns, assumed.step_after_ns)})"
    )
    if assumed.tpot_before_ns is not None and assumed.tpot_after_ns is not None:
        change = _change(assumed.tpot_before_ns, assumed.tpot_after_ns)
        lines.append(f"TPOT {duration(assumed.tpot_before_ns)} -> {duration(assumed.tpot_after_ns)} ({change})")
    if assumed.tokens_before is not None and assumed.tokens_after is not None:
        change = _change(assumed.tokens_before, assumed.tokens_after)
        lines.append(f"tokens/s {assumed.tokens_before:,.0f} -> {assumed.tokens_after:,.0f} ({change})")
    return [Text(line) for line in lines]


def _change(before: float, after: float) -> str:
    return f"{(after / before - 1) * 100:+.1f} %"
