"""Gaps on the GPU as JSON and as text."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich.console import Group
from rich.text import Text

from traceanalyzer.analysis.idle import CAUSES, PLACES, Idle
from traceanalyzer.report.console import table
from traceanalyzer.report.text import cut_middle, duration, percent, plural, us

SCHEMA = "traceanalyzer/idle/1"
CSV_COLUMNS = ("device", "start_us", "dur_us", "place", "cause", "step", "block", "host_us", "before", "after")


def document(found: Idle) -> dict[str, Any]:
    """Return the JSON document of ``idle``."""
    return {
        "schema": SCHEMA,
        "timelines": [
            {
                "device": row["device"],
                "span_us": us(row["span_ns"]),
                "busy_us": us(row["busy_ns"]),
                "idle_us": us(row["idle_ns"]),
                "steps": row["steps"],
            }
            for row in found.totals.iter_rows(named=True)
        ],
        "classes": [
            {"place": row["place"], "cause": row["cause"], "gaps": row["gaps"], "total_us": us(row["total_ns"])}
            for row in _classes(found.gaps).iter_rows(named=True)
        ],
        "gaps": [
            {
                "device": row["device"],
                "start_us": us(row["start_ns"]),
                "dur_us": us(row["dur_ns"]),
                "place": row["place"],
                "cause": row["cause"],
                "step": row["step"],
                "block": row["block"],
                "host_us": us(row["host_ns"]),
                "before": row["before"],
                "after": row["after"],
            }
            for row in found.gaps.iter_rows(named=True)
        ],
        "host": [
            {"place": row["place"], "name": row["name"], "inside": row["inside"], "total_us": us(row["total_ns"])}
            for row in found.host.iter_rows(named=True)
        ],
        "warnings": [warning.to_dict() for warning in found.warnings],
    }


def _classes(gaps: pl.DataFrame) -> pl.DataFrame:
    return (
        gaps.group_by("place", "cause")
        .agg(gaps=pl.len(), total_ns=pl.col("dur_ns").sum())
        .sort(
            pl.col("place").replace_strict(list(PLACES), range(len(PLACES)), return_dtype=pl.Int8),
            pl.col("cause").replace_strict(list(CAUSES), range(len(CAUSES)), return_dtype=pl.Int8),
        )
    )


EXPLAINED = {
    "host": "launched late, the host was busy",
    "device": "launched in time, the GPU waited for something else",
    "unknown": "the launch was not recorded",
}


def render(found: Idle, limit: int, width: int) -> Group:
    """Return totals, the gaps by place and cause, and what the host did meanwhile."""
    parts: list[Any] = []
    for row in found.totals.iter_rows(named=True):
        if row["idle_ns"] is None:
            text = "idle time unknown: kernels were not recorded"
        else:
            share = row["idle_ns"] / row["span_ns"] if row["span_ns"] else None
            text = f"idle {duration(row['idle_ns'])} of {duration(row['span_ns'])} ({percent(share)})"
        parts.append(Text(f"device {row['device']}: {text}", style="bold"))
    classes = _classes(found.gaps)
    if classes.is_empty():
        return Group(*parts, Text("  no gaps"))
    rows = [
        (f"{row['place']}: {EXPLAINED[row['cause']]}", f"{row['gaps']:,}", duration(row["total_ns"]))
        for row in classes.iter_rows(named=True)
    ]
    parts += [Text(), table(("where and why", "gaps", "total"), rows, name_column=0, width=width, shorten=cut_middle)]
    host = found.host.head(limit or found.host.height)
    if host.height:
        doing = [
            (row["name"] or "(no host event recorded)", row["inside"] or "", row["place"], duration(row["total_ns"]))
            for row in host.iter_rows(named=True)
        ]
        headings = ("host event", "inside", "where", "total")
        parts += [Text(), Text("What the host did while the GPU waited for it", style="bold")]
        parts.append(table(headings, doing, name_column=0, width=width, shorten=cut_middle))
    longest = [
        (row["after"], row["place"], row["cause"], duration(row["dur_ns"]))
        for row in found.gaps.head(limit or found.gaps.height).iter_rows(named=True)
    ]
    parts += [Text(), Text(f"Longest of {plural(found.gaps.height, 'gap')}", style="bold")]
    parts.append(table(("gap before", "where", "cause", "length"), longest, name_column=0, width=width))
    return Group(*parts)
