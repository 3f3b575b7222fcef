"""Gaps on the GPU as JSON and as text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.idle.compute import Idle
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import (
    cut_middle,
    duration,
    percent,
    plural,
    us,
)

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
            for row in found.by_cause.iter_rows(named=True)
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


EXPLAINED = {
    "host": "launched late, the host was busy",
    "device": "launched in time, then waited on the GPU",
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
    classes = found.by_cause
    if found.totals.is_empty():
        return Group(*(Text(warning.message) for warning in found.warnings))
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
            (
                row["name"] or "(no host event recorded)",
                cut_middle(row["inside"] or "", max(width // 4, 20)),
                row["place"],
                duration(row["total_ns"]),
            )
            for row in host.iter_rows(named=True)
        ]
        headings = ("host event", "inside", "where", "total")
        parts += [Text(), Text("What the host did while the GPU waited for it", style="bold")]
        parts.append(table(headings, doing, name_column=0, width=width, shorten=cut_middle, spare=(1, 2)))
    ended = found.by_kernel
    rest = ended.slice(limit) if limit else ended.clear()
    longest = [
        (
            row["after"],
            row["place"],
            row["cause"],
            f"{row['gaps']:,}",
            *map(duration, (row["longest_ns"], row["total_ns"])),
        )
        for row in ended.head(limit or ended.height).iter_rows(named=True)
    ]
    parts += [Text(), Text(f"What ends the {plural(found.gaps.height, 'gap')}", style="bold")]
    columns = ("gap before", "where", "cause", "gaps", "longest", "total")
    parts.append(table(columns, longest, name_column=0, width=width, spare=(4, 1, 2)))
    if rest.height:
        more = f"{plural(rest.height, 'more row')} with {duration(float(rest['total_ns'].sum()))}"
        parts.append(Text(f"  and {more} (--limit 0 shows all)"))
    return Group(*parts)
