"""Hotspots as the contract's JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.analysis.advice import Finding
from traceanalyzer.analysis.hotspots import Hotspots
from traceanalyzer.report.console import table
from traceanalyzer.report.text import duration, percent, plural, us, visible

SCHEMA = "traceanalyzer/hotspots/1"


CSV_COLUMNS = (
    "name",
    "role",
    "family",
    "tile",
    "dtypes",
    "num_warps",
    "count",
    "total_us",
    "share",
    "mean_us",
    "p50_us",
    "p99_us",
    "per_step_us",
    "bound",
    "roof_share",
    "headroom_us",
)


def document(found: Hotspots, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the JSON document of ``hotspots``."""
    return {
        "schema": SCHEMA,
        "phase": found.phase,
        "total_us": us(found.total_ns),
        "steps": found.steps,
        "rows": [
            {
                "name": row["name"],
                "role": row["role"],
                "family": row["family"],
                "count": row["count"],
                "total_us": us(row["total_ns"]),
                "share": row["share"],
                "mean_us": us(row["mean_ns"]),
                "p50_us": us(row["p50_ns"]),
                "p99_us": us(row["p99_ns"]),
                "per_step_us": us(row["per_step_ns"]),
                "tile": row["tile"],
                "dtypes": row["dtypes"],
                "num_warps": row["num_warps"],
                "bound": None,
                "roof_share": None,
                "headroom_us": None,
            }
            for row in found.rows.iter_rows(named=True)
        ],
        "copies": [
            {"name": row["name"], "count": row["count"], "total_us": us(row["total_ns"])}
            for row in found.copies.iter_rows(named=True)
        ],
        "findings": [
            {"code": finding.code, "message": finding.message, "worth_us": us(finding.worth_ns)} for finding in findings
        ],
    }


def render(found: Hotspots, findings: Sequence[Finding], by: str, limit: int, width: int) -> Group:
    """Return the ranking as text, the largest ``limit`` rows; what is cut off is summed in words."""
    shown = found.rows.head(limit)
    rows = [
        (
            row["name"] or "unknown",
            duration(row["total_ns"]),
            percent(row["share"]),
            f"{row['count']:,}",
            duration(row["mean_ns"]),
            duration(row["per_step_ns"]),
        )
        for row in shown.iter_rows(named=True)
    ]
    scope = f"{found.phase} steps" if found.phase else "whole trace"
    heading = Text(f"{duration(found.total_ns)} of kernel time, {scope}, by {by}", style="bold")
    parts: list[Any] = [heading, Text()]
    parts.append(table((by, "total", "share", "count", "mean", "per step"), rows, name_column=0, width=width))
    rest = found.rows.slice(limit)
    if rest.height:
        parts.append(
            Text(
                f"  and {plural(rest.height, 'more row')} with {duration(rest['total_ns'].sum())} (--limit 0 shows all)"
            )
        )
    if found.copies.height:
        parts.append(Text(f"  beside kernels: copies and memsets, {duration(found.copies['total_ns'].sum())}"))
    parts.append(Text(f"  per step: {_basis(found)}"))
    for finding in findings:
        parts += [Text(), Text(visible(finding.message))]
    return Group(*parts)


def _basis(found: Hotspots) -> str:
    if not found.steps:
        return "n/a, no complete step was found"
    return f"mean over {plural(found.steps, 'complete step')}; partial and dummy steps are left out"
