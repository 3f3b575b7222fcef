"""Hotspots as the contract's JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.findings import Finding
from traceanalyzer.roofline.bounds import Bound
from traceanalyzer.roofline.triton_cache import CompiledKernel
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import (
    duration,
    duration_us,
    percent,
    plural,
    us,
    visible,
)

SCHEMA = "traceanalyzer/hotspots/1"
WIDE = 100
"""Terminal width from which on tiles have a column."""
SPARE = ("tile", "count", "bound", "of roof", "role", "per step")
"""Columns that a narrow terminal does without, the first to go first."""


CSV_COLUMNS = (
    "name",
    "role",
    "family",
    "tile",
    "dtypes",
    "num_warps",
    "num_stages",
    "registers",
    "spills",
    "shared_bytes",
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


def document(
    found: Hotspots,
    findings: Sequence[Finding],
    compiled: Mapping[str, CompiledKernel],
    bounds: Mapping[str, Bound],
) -> dict[str, Any]:
    """Return the JSON document of ``hotspots``.

    Args:
        found: the ranking.
        findings: what to act on.
        compiled: what the Triton cache says, by kernel name.
        bounds: what the roofline says, by the name of the row.
    """
    return {
        "schema": SCHEMA,
        "phase": found.phase,
        "total_us": us(found.total_ns),
        "steps": found.steps,
        "rows": [
            _row(row, compiled.get(row["name"]), bounds.get(row["name"])) for row in found.rows.iter_rows(named=True)
        ],
        "copies": [
            {"name": row["name"], "count": row["count"], "total_us": us(row["total_ns"])}
            for row in found.copies.iter_rows(named=True)
        ],
        "findings": [
            {"code": finding.code, "message": finding.message, "worth_us": us(finding.worth_ns)} for finding in findings
        ],
    }


def _row(row: dict[str, Any], compiled: CompiledKernel | None, bound: Bound | None) -> dict[str, Any]:
    return {
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
        "tile": _tile(row, compiled),
        "tile_source": "name" if row["tile"] else "triton cache" if _tile(row, compiled) else None,
        "dtypes": row["dtypes"],
        "num_warps": row["num_warps"] or (compiled.num_warps if compiled else None),
        "num_stages": compiled.num_stages if compiled else None,
        "registers": compiled.registers if compiled else None,
        "spills": compiled.spills if compiled else None,
        "shared_bytes": compiled.shared_bytes if compiled else None,
        "bound": bound.bound if bound else None,
        "roof_share": bound.roof_share if bound else None,
        "headroom_us": us(bound.headroom_ns) if bound else None,
    }


def _tile(row: dict[str, Any], compiled: CompiledKernel | None) -> str | None:
    from_name: str | None = row["tile"]
    if from_name or compiled is None:
        return from_name
    parts = (compiled.block_m, compiled.block_n, compiled.block_k)
    return None if parts == (None, None, None) else "x".join("?" if part is None else str(part) for part in parts)


def render(
    found: Hotspots,
    findings: Sequence[Finding],
    compiled: Mapping[str, CompiledKernel],
    bounds: Mapping[str, Bound],
    by: str,
    limit: int,
    width: int,
    step: int | None = None,
) -> Group:
    """Return the ranking as text, the largest ``limit`` rows; what is cut off is summed in words.

    Args:
        found: the ranking.
        findings: what to act on.
        compiled: what the Triton cache says, by kernel name.
        bounds: what the roofline says, by the name of the row.
        by: what a row is: kernel, role or family.
        limit: rows shown.
        width: of the terminal, in characters.
        step: the index of the one step that the ranking is of; null for more.
    """
    shown = [
        _row(row, compiled.get(row["name"]), bounds.get(row["name"]))
        for row in found.rows.head(limit).iter_rows(named=True)
    ]
    numbers = [
        (
            duration_us(row["total_us"]),
            percent(row["share"]),
            f"{row['count']:,}",
            duration_us(row["per_step_us"]),
        )
        for row in shown
    ]
    columns: tuple[str, ...] = (by, "total", "share", "count", "per step")
    rows: list[tuple[str, ...]] = [
        (row["name"] or "unknown", *cells) for row, cells in zip(shown, numbers, strict=True)
    ]
    if by == "kernel":
        extra = ("role", "tile") if width >= WIDE else ("role",)
        columns = (by, *extra, *columns[1:])
        rows = [(name, *_known(row, extra), *cells) for (name, *cells), row in zip(rows, shown, strict=True)]
    if bounds:
        # Room for what the roofline says: count and the trace's total are in JSON and CSV.
        kept = [i for i, column in enumerate(columns) if column not in ("total", "count")]
        columns = (*(columns[i] for i in kept), "bound", "of roof", "headroom")
        rows = [(*(cells[i] for i in kept), *_bound_cells(row)) for cells, row in zip(rows, shown, strict=True)]
    if not found.rows.height and found.phase and not found.steps:
        return Group(Text(f"no complete {found.phase} step; complete steps are {_phases(found.phases)}"))
    scope = f"step {step}" if step is not None else f"{found.phase} steps" if found.phase else "whole trace"
    parts: list[Any] = [Text(f"{duration(found.total_ns)} of kernel time, {scope}, by {by}", style="bold"), Text()]
    spare = [columns.index(column) for column in SPARE if column in columns]
    parts.append(table(columns, rows, name_column=0, width=width, spare=spare))
    rest = found.rows.slice(limit)
    if rest.height:
        parts.append(
            Text(
                f"  and {plural(rest.height, 'more row')} with {duration(float(rest['total_ns'].sum()))} "
                "(--limit 0 shows all)"
            )
        )
    if found.copies.height:
        parts.append(Text(f"  beside kernels: copies and memsets, {duration(float(found.copies['total_ns'].sum()))}"))
    if step is None:
        parts.append(Text(f"  per step: {_basis(found)}"))
    if bounds:
        parts.append(Text("  headroom: time a step above floor and launch latency; `roofline` shows what it rests on"))
    for finding in findings:
        parts += [Text(), Text(visible(finding.message))]
    return Group(*parts)


def _bound_cells(row: dict[str, Any]) -> tuple[str, str, str]:
    headroom = "" if row["headroom_us"] is None else duration_us(row["headroom_us"])
    return row["bound"] or "", "" if row["roof_share"] is None else percent(row["roof_share"]), headroom


def _known(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The cells of role and tile: a kernel always has a role, so null means that its calls have several."""
    return [row[column] or ("several" if column == "role" else "") for column in columns]


def _basis(found: Hotspots) -> str:
    if not found.steps:
        return "n/a, no complete step was found"
    mean = f"mean over {plural(found.steps, 'complete step')}"
    counted = [(phase, steps) for phase, steps in found.phases if phase != "dummy"]
    if found.phase is None and found.steps > 1 and len(counted) > 1:
        mean += f" of different phases ({_phases(counted)}; --phase shows one)"
    return f"{mean}; partial and dummy steps are left out"


def _phases(phases: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{steps:,} {phase}" for phase, steps in phases) or "none"
