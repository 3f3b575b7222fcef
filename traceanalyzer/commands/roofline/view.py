"""The roofline as the contract's JSON, as CSV and as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.roofline import Roofline, Row, WhatIf
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import (
    cut_middle,
    duration,
    percent,
    plural,
    us,
    visible,
)

SCHEMA = "traceanalyzer/roofline/1"

LEAST_NEEDED = ("TFLOP/s", "GB/s", "FLOP/B", "n", "%", "floor", "roof %", "headroom", "bound")
"""Columns that a narrow terminal does without, the first to go first."""

CSV_COLUMNS = (
    "role",
    "kind",
    "part",
    "count",
    "measured_us",
    "share",
    "flops",
    "bytes",
    "intensity",
    "tflops",
    "gbps",
    "dtype",
    "bound",
    "floor_us",
    "roof_share",
    "headroom_us",
    "reachable_us",
    "reachable_headroom_us",
    "latency_us",
    "plausible",
    "redundant",
    "source",
)


def document(found: Roofline, assumed: WhatIf | None = None) -> dict[str, Any]:
    """Return the JSON document of ``roofline``; ``assumed`` is the step under the user's assumptions."""
    return {
        "schema": SCHEMA,
        "phase": found.phase,
        "steps": found.steps,
        "gpu": _gpu(found),
        "model": {"name": found.model.name if found.model else None, "source": found.model_source},
        "measured_us": us(found.measured_ns),
        "floor_us": us(found.floor_ns),
        "reachable_us": us(found.reachable_ns),
        "explained_share": found.explained_share,
        "copies_us": us(found.copies_ns),
        "step_us": us(found.span_ns),
        "period_us": us(found.period_ns),
        "latency_us": us(found.latency.ns),
        "rows": [_row(row, found) for row in found.rows],
        "findings": [
            {"code": finding.code, "message": finding.message, "worth_us": us(finding.worth_ns)}
            for finding in found.findings
        ],
        "what_if": _what_if(assumed) if assumed else None,
        "basis": list(found.basis),
    }


def _gpu(found: Roofline) -> dict[str, Any]:
    ceilings = found.ceilings
    if ceilings is None:
        return {
            "name": found.device.name,
            "source": found.device.source,
            "peak_tflops": {},
            "bandwidth_gbps": None,
            "achievable_tflops": {},
            "achievable_gbps": None,
        }
    reached = {dtype: ceilings.achievable_tflops(dtype) for dtype in ceilings.gpu.peak_tflops}
    return {
        "name": ceilings.gpu.name,
        "source": found.device.source,
        "peak_tflops": dict(ceilings.gpu.peak_tflops),
        "bandwidth_gbps": ceilings.gpu.bandwidth_gbps,
        "achievable_tflops": {dtype: value for dtype, value in reached.items() if value is not None},
        "achievable_gbps": ceilings.gbps,
    }


def _row(row: Row, found: Roofline) -> dict[str, Any]:
    return {
        "role": row.role,
        "kind": row.kind,
        "part": row.part or None,
        "kernels": list(row.names),
        "count": int(row.count) if row.count.is_integer() else row.count,
        "measured_us": us(row.measured_ns),
        "share": row.measured_ns / found.measured_ns if found.measured_ns else None,
        "flops": row.flops,
        "bytes": row.bytes,
        "intensity": row.intensity,
        "tflops": row.tflops,
        "gbps": row.gbps,
        "dtype": row.dtype,
        "bound": row.bound,
        "floor_us": us(row.floor_ns),
        "roof_share": row.roof_share,
        "headroom_us": us(row.headroom_ns),
        "reachable_us": us(row.reachable_ns),
        "reachable_headroom_us": us(row.reachable_headroom_ns),
        "latency_us": us(row.latency_ns),
        "plausible": row.plausible,
        "redundant": row.redundant,
        "source": row.source,
        "basis": list(row.basis),
    }


def _what_if(assumed: WhatIf) -> dict[str, Any]:
    return {
        "assumptions": [
            {
                "role": effect.assumption.role,
                "kind": effect.assumption.kind,
                "share": effect.assumption.share,
                "share_before": effect.before_share,
                "before_us": us(effect.before_ns),
                "after_us": us(effect.after_ns),
            }
            for effect in assumed.effects
        ],
        "step_us": {"before": us(assumed.step_before_ns), "after": us(assumed.step_after_ns)},
        "tpot_us": {"before": us(assumed.tpot_before_ns), "after": us(assumed.tpot_after_ns)},
        "tokens_per_s": {"before": assumed.tokens_before, "after": assumed.tokens_after},
    }


def csv_rows(found: Roofline) -> list[dict[str, Any]]:
    """Return the rows for CSV, times in µs."""
    return [_row(row, found) for row in found.rows]


def render(found: Roofline, assumed: WhatIf | None, limit: int, width: int) -> Group:
    """Return the roofline as text: the ``limit`` rows with most time, what they come to, findings, what it rests on."""
    shown, rest = found.rows[:limit], found.rows[limit:]
    columns = ("work", "n", "µs", "%", "FLOP/B", "GB/s", "TFLOP/s", "bound", "floor", "roof %", "headroom")
    rows = [
        (
            row.label,
            f"{row.count:,.4g}",
            _us(row.measured_ns),
            f"{100 * row.measured_ns / found.measured_ns:.1f}" if found.measured_ns else "",
            _short(row.intensity),
            _short(row.gbps),
            _short(row.tflops),
            "comm" if row.bound == "communication" else row.bound,
            _us(row.floor_ns),
            _share(row),
            _headroom(row),
        )
        for row in shown
    ]
    parts: list[Any] = [*(Text(visible(line), style="bold") for line in _title(found)), Text()]
    spare = [columns.index(heading) for heading in LEAST_NEEDED]
    shown_table = table(columns, rows, name_column=0, width=width, shorten=cut_middle, spare=spare)
    parts.append(shown_table)
    missing = [heading for heading in columns if heading not in {str(column.header) for column in shown_table.columns}]
    if missing:
        parts.append(Text(f"  no room for {', '.join(missing)}: --csv has them"))
    if rest:
        left = duration(sum(row.measured_ns for row in rest))
        parts.append(Text(f"  and {plural(len(rest), 'more row')} with {left} (--limit 0 shows all)"))
    if found.copies_ns:
        parts.append(Text(f"  beside kernels: copies and memsets, {duration(found.copies_ns)} a step"))
    mean = f" (mean of {found.steps:,})" if found.steps > 1 else ""
    parts.append(Text(f"  n, µs, floor and headroom are per step{mean}; headroom: time above floor and launch latency"))
    if any(not row.plausible for row in found.rows):
        parts.append(Text("  !  faster than its roof, which cannot be: see below"))
    if any(row.redundant for row in shown):
        parts.append(Text("  *  repeated work: no part of the step's floor"))
    if assumed:
        parts += [Text(), *_what_if_lines(assumed)]
    parts += [Text(), *(Text(f"  {visible(line)}", style="dim") for line in found.basis)]
    for finding in found.findings:
        parts += [Text(), Text(visible(finding.message))]
    return Group(*parts)


def _title(found: Roofline) -> list[str]:
    model = found.model.name if found.model else "unknown model"
    inferred = " (inferred)" if found.model_source == "inferred" else ""
    gpu = found.ceilings.gpu.name if found.ceilings else (found.device.name or "unknown GPU")
    phase = f"{found.phase} " if found.phase else ""
    first = f"{model}{inferred} on {gpu}: {duration(found.measured_ns)} of kernels a {phase}step"
    if found.floor_ns is None:
        return [first, "floor unknown"]
    reachable = "" if found.reachable_ns is None else f", {duration(found.reachable_ns)} under the achievable roofs"
    floor = (
        f"floor {duration(found.floor_ns)}{reachable}; {percent(found.explained_share)} of the kernel time explained"
    )
    return [first, floor]


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1000:,.1f}"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _share(row: Row) -> str:
    if row.roof_share is None:
        return ""
    return f"{row.roof_share * 100:.1f}{'' if row.plausible else '!'}"


def _headroom(row: Row) -> str:
    if row.headroom_ns is None:
        return ""
    return f"{_us(row.headroom_ns)}{'*' if row.redundant else ''}"


def _what_if_lines(assumed: WhatIf) -> list[Text]:
    lines = [
        f"If {effect.assumption.label} reached {percent(effect.assumption.share)} of its roof "
        f"(now {percent(effect.before_share)}): {duration(effect.before_ns)} -> {duration(effect.after_ns)}"
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
