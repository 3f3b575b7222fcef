"""Hotspots as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.commands.hotspots.result import HotspotCopy, HotspotRow, HotspotsDocument
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.findings import Finding
from traceanalyzer.roofline.bounds import Bound
from traceanalyzer.roofline.triton_cache import CompiledKernel
from traceanalyzer.segment.opening import only_opening, without_opening
from traceanalyzer.segment.selection import phase_counts
from traceanalyzer.show.part_table import part_table
from traceanalyzer.wording import duration_us, plural, visible

WIDE = 100
"""Terminal width from which on tiles have a column."""
SPARE = ("tile", "count", "bound", "roof_share", "role", "per_step_us")
"""Columns that a narrow terminal does without, the first to go first."""


def document(
    ranking: Hotspots,
    findings: Sequence[Finding],
    compiled: Mapping[str, CompiledKernel],
    bounds: Mapping[str, Bound],
) -> HotspotsDocument:
    """Return the JSON document of ``hotspots``.

    Args:
        ranking: what was ranked.
        findings: what to act on.
        compiled: what the Triton cache says, by kernel name.
        bounds: what the roofline says, by the name of the row.
    """
    return part_of(
        HotspotsDocument,
        ranking,
        rows=rows_of_ranking(ranking.rows, compiled, bounds),
        steps_by_phase=dict(ranking.phases),
        copies=rows_of(HotspotCopy, ranking.copies),
        findings=list(findings),
    )


def rows_of_ranking(
    frame: pl.DataFrame, compiled: Mapping[str, CompiledKernel], bounds: Mapping[str, Bound]
) -> list[HotspotRow]:
    """Return the rows of a ranking with what the Triton cache and the roofline say of them."""
    return [_row(row, compiled.get(row["name"]), bounds.get(row["name"])) for row in frame.iter_rows(named=True)]


def _row(row: dict[str, Any], compiled: CompiledKernel | None, bound: Bound | None) -> HotspotRow:
    cached = {name: getattr(compiled, name, None) for name in ("num_stages", "registers", "spills", "shared_bytes")}
    held = {name: getattr(bound, name, None) for name in ("bound", "roof_share", "headroom_ns")}
    tile = _tile(row, compiled)
    return part_of(
        HotspotRow,
        {**row, **cached, **held},
        tile=tile,
        tile_source="name" if row["tile"] else "triton cache" if tile else None,
        num_warps=row["num_warps"] or (compiled.num_warps if compiled else None),
    )


def _tile(row: dict[str, Any], compiled: CompiledKernel | None) -> str | None:
    from_name: str | None = row["tile"]
    if from_name or compiled is None:
        return from_name
    parts = (compiled.block_m, compiled.block_n, compiled.block_k)
    return None if parts == (None, None, None) else "x".join("?" if part is None else str(part) for part in parts)


def render(answer: HotspotsDocument, ranking: Hotspots, by: str, *, limit: int, width: int, step: int | None) -> Group:
    """Return the ranking as text, the largest ``limit`` rows; what is cut off is summed in words.

    Args:
        answer: what is shown.
        ranking: the frames it was made of.
        by: what a row is: kernel, role or family.
        limit: rows shown.
        width: of the terminal, in characters.
        step: the index of the one step that the ranking is of; None for more.
    """
    scope = f"step {step}" if step is not None else f"{answer.phase} steps" if answer.phase else "whole trace"
    bounded = any(row.bound is not None for row in answer.rows)
    parts: list[Any] = [Text(finding.message, style="bold") for finding in only_opening(answer.findings)]
    parts += [Text(f"{_total(answer, ranking)}, {scope}, by {by}", style="bold"), Text()]
    parts.append(_table(answer.rows[:limit], by, width, bounded=bounded))
    if rest := answer.rows[limit:]:
        left = f"{plural(len(rest), 'more row')} with {duration_us(sum(row.total_us for row in rest))}"
        parts.append(Text(f"  and {left} (--limit 0 shows all)"))
    if answer.copies:
        copied = duration_us(sum(copy.total_us for copy in answer.copies))
        parts.append(Text(f"  besides kernels: copies and memsets, {copied}"))
    if step is None:
        parts.append(Text(f"  per step: {_basis(ranking)}"))
    if bounded:
        parts.append(Text("  headroom: time per step above floor and launch latency; `roofline` says more"))
    for finding in without_opening(answer.findings):
        parts += [Text(), Text(visible(finding.message))]
    return Group(*parts)


def _total(answer: HotspotsDocument, ranking: Hotspots) -> str:
    return f"{duration_us(answer.total_us)} of {'compute ops' if ranking.on_cpu else 'kernel time'}"


def _table(rows: Sequence[HotspotRow], by: str, width: int, *, bounded: bool) -> Table | Text:
    if not rows:
        return Text("  no kernels")
    names = ["name"]
    if by == "kernel":
        names += ["role", "tile"] if width >= WIDE else ["role"]
    # Room for what the roofline says: count and the trace's total are in JSON and CSV.
    names += ["share", "per_step_us"] if bounded else ["total_us", "share", "count", "per_step_us"]
    names += ["bound", "roof_share", "headroom_us"] if bounded else []
    unknown = {
        "name": "unknown",
        "role": "several",
        **dict.fromkeys(("tile", "bound", "roof_share", "headroom_us"), ""),
    }
    return part_table(rows, names, width=width, spare=SPARE, headings={"name": by}, unknown=unknown)


def _basis(ranking: Hotspots) -> str:
    if not ranking.steps:
        return "n/a, the trace has no complete step"
    mean = f"mean over {plural(ranking.steps, 'complete step')}"
    if len(ranking.phases) > 1:
        mean += f" of different phases ({phase_counts(dict(ranking.phases))}; --phase shows one)"
    return f"{mean}; partial and dummy steps are left out"
