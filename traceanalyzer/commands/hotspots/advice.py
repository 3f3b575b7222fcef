"""Findings in words: what to attack first and why, tiles that pad, work that is repeated."""

from __future__ import annotations

import polars as pl

from traceanalyzer.findings import LEAST_SHARE, NAME_WIDTH, Finding
from traceanalyzer.names import KernelName, parse, short_name
from traceanalyzer.names.kernel_text import tile_text
from traceanalyzer.roofline.redundancy import redundancies
from traceanalyzer.segment import segment
from traceanalyzer.segment.selection import select
from traceanalyzer.trace import Trace
from traceanalyzer.wording import duration

LEAST_PADDING = 0.5
"""A tile warning is given from this share of padded rows and this share of the kernel time on."""

SMALLEST_TILE_ROWS = 16
"""Rows of the smallest tensor-core tile: padding up to here cannot be avoided by another tile."""


def advice(trace: Trace, phase: str | None = None, step: int | None = None) -> list[Finding]:
    """Return findings on the kernels of a trace (of a phase or a step), the line on what to attack last.

    Args:
        trace, phase, step: as for ``hotspots``.
    """
    events, steps = select(trace, phase, step)
    kernels = events.filter("is_kernel")
    if kernels.is_empty():
        return []
    totals = (
        kernels.group_by("name")
        .agg(total_ns=pl.col("dur_ns").sum(), count=pl.len(), roles=pl.col("role").drop_nulls().unique().sort())
        .with_columns(pl.col("name").cast(pl.String), share=pl.col("total_ns") / pl.col("total_ns").sum())
        .sort(["total_ns", "name"], descending=[True, False])
    )
    found = _padded_tiles(trace, kernels, totals)
    if step is None:
        found += _repeated_work(trace)
    return [*found, _target(totals, steps)]


def _target(totals: pl.DataFrame, steps: int) -> Finding:
    top = totals.row(0, named=True)
    kernel = parse(top["name"])
    roles = ", ".join(top["roles"]) or "unknown role"
    tile = f", tile {tile_text(kernel)}" if kernel.tile else ""
    share = f"{top['share'] * 100:.1f} % of kernel time"
    start = f"Attack {short_name(top['name'], NAME_WIDTH)} first: {share} ({roles}{tile})."
    if kernel.retunable:
        return Finding("target", f"{start} Its tile can be changed: {kernel.knob}.", None)
    retunable = next((row for row in totals.iter_rows(named=True) if parse(row["name"]).retunable), None)
    if retunable is None:
        return Finding(
            "target", f"{start} Neither its tile nor that of any other kernel here is known to be changeable.", None
        )
    other = f"{short_name(retunable['name'], NAME_WIDTH)} with {retunable['share'] * 100:.1f} %"
    return Finding(
        "target",
        f"{start} Its tile is not known to be changeable; the largest kernel that can be retuned is {other}: "
        f"{parse(retunable['name']).knob}.",
        None,
    )


def _repeated_work(trace: Trace) -> list[Finding]:
    return [
        Finding(
            "repeated_work",
            f"{short_name(found.name, NAME_WIDTH)} runs in {found.blocks:.0f} blocks a step; once would do: "
            f"{duration(found.worth_ns)} a step could be saved. {found.basis.capitalize()}.",
            found.worth_ns,
        )
        for found in redundancies(trace)
    ]


def _padded_tiles(trace: Trace, kernels: pl.DataFrame, totals: pl.DataFrame) -> list[Finding]:
    """Warn where a GEMM's tile has far more rows than a decode step has tokens."""
    rows_per_step = segment(trace).steps.filter(pl.col("phase") == "decode").select("device", "step", "tokens")
    largest = (
        kernels.select("device", "step", "name")
        .join(rows_per_step.drop_nulls("tokens"), on=["device", "step"], nulls_equal=True)
        .group_by("name")
        .agg(m=pl.col("tokens").max())
        .with_columns(pl.col("name").cast(pl.String))
    )
    found = []
    for row in totals.join(largest, on="name", maintain_order="left").iter_rows(named=True):
        kernel = parse(row["name"])
        rows = tile_rows(kernel)
        if kernel.kind != "gemm" or rows is None or rows <= SMALLEST_TILE_ROWS or row["share"] < LEAST_SHARE:
            continue
        padding = 1 - row["m"] / rows
        if padding >= LEAST_PADDING:
            few = f"{row['m']} row" if row["m"] == 1 else f"at most {row['m']} rows"
            found.append(
                Finding(
                    "tile_padding",
                    f"{short_name(row['name'], NAME_WIDTH)}: a tile of {rows} rows for {few} "
                    f"({padding * 100:.0f} % padding), {row['share'] * 100:.1f} % of kernel time.",
                    None,
                )
            )
    return found


def tile_rows(kernel: KernelName) -> int | None:
    """Rows of the tile that run along the tokens; where that may be either side of it, the smaller. Null if unknown."""
    if kernel.ambiguous is None:
        return kernel.block_m
    sides = [side for side in (kernel.block_m, kernel.block_n) if side is not None]
    return min(sides) if len(sides) == 2 else None
