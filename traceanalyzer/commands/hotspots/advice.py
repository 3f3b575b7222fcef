"""Findings in words: what to attack first and why, tiles that pad, work that is repeated."""

from __future__ import annotations

import polars as pl

from traceanalyzer.findings import DOUBTFUL_NAMES, LEAST_SHARE, NAME_WIDTH, NO_TARGET, Finding
from traceanalyzer.names import KernelName, parse, short_name
from traceanalyzer.names.kernel_text import tile_text
from traceanalyzer.roofline.redundancy import redundancies
from traceanalyzer.segment import segment
from traceanalyzer.segment.opening import KEEP_BUSY, is_idle, opening
from traceanalyzer.segment.selection import select
from traceanalyzer.trace import Trace
from traceanalyzer.wording import duration, percent, us

LEAST_PADDING = 0.5
"""Share of padded rows in a tile from which on it is worth a sentence. Chosen, not fitted."""

SMALLEST_TILE_ROWS = 16
"""Rows of the smallest tensor-core tile (m16 of mma, 16 of MFMA): no other tile avoids padding up to here."""


def advice(trace: Trace, phase: str | None = None, step: int | None = None) -> list[Finding]:
    """Return findings on the kernels of a trace (of a phase or a step), the line on what to attack last.

    What `opening` says comes first. Where the GPU idles most of the time, or the trace is of training, no kernel is
    recommended; of a graph capture nothing is said of kernels.

    Args:
        trace, phase, step: as for ``hotspots``.
    """
    events, _ = select(trace, phase, step)
    kernels = events.filter("is_kernel")
    first = opening(segment(trace), phase=phase, step=step)
    kind = segment(trace).workload.kind
    if kernels.is_empty() or kind == "graph_capture":
        return first
    if trace.names_doubtful:
        return [*first, Finding("target", f"{NO_TARGET} {DOUBTFUL_NAMES}.")]
    totals = (
        kernels.group_by("name")
        .agg(total_ns=pl.col("dur_ns").sum(), count=pl.len(), roles=pl.col("role").drop_nulls().unique().sort())
        .with_columns(pl.col("name").cast(pl.String), share=pl.col("total_ns") / pl.col("total_ns").sum())
        .sort(["total_ns", "name"], descending=[True, False])
    )
    if kind == "training":
        return [*first, Finding("target", _largest(totals))]
    findings = [*_unfused_attention(kernels), *_padded_tiles(trace, kernels, totals)]
    if step is None:
        findings += _repeated_work(trace)
    whole = "the compute ops' time" if trace.cpu_only else "kernel time"
    target = f"{KEEP_BUSY} {_largest(totals)}" if is_idle(first) else _target(totals, whole)
    return [*first, *findings, Finding("target", target)]


def _largest(totals: pl.DataFrame) -> str:
    """Say which kernel takes most time, without advice on it."""
    top = totals.row(0, named=True)
    return f"Largest kernel: {short_name(top['name'], NAME_WIDTH)}, {top['share'] * 100:.1f} % of kernel time."


def _target(totals: pl.DataFrame, whole: str) -> str:
    """Say which kernel to attack; one whose tile can be changed, if any."""
    top = totals.row(0, named=True)
    kernel = parse(top["name"])
    roles = ", ".join(top["roles"]) or "unknown role"
    tile = f", tile {tile_text(kernel)}" if kernel.tile else ""
    share = f"{top['share'] * 100:.1f} % of {whole}"
    start = f"Attack {short_name(top['name'], NAME_WIDTH)} first: {share} ({roles}{tile})."
    if kernel.retunable:
        return f"{start} Its tile can be changed: {kernel.knob}."
    retunable = next((row for row in totals.iter_rows(named=True) if parse(row["name"]).retunable), None)
    if retunable is None:
        return f"{start} Neither its tile nor that of any other kernel here is known to be changeable."
    other = f"{short_name(retunable['name'], NAME_WIDTH)} with {retunable['share'] * 100:.1f} %"
    return (
        f"{start} Its tile is not known to be changeable; the largest kernel that can be retuned is {other}: "
        f"{parse(retunable['name']).knob}."
    )


def _unfused_attention(kernels: pl.DataFrame) -> list[Finding]:
    """Say that attention is made of separate kernels, where its softmax is one."""
    attention = kernels.filter(pl.col("role") == "attention")
    names = attention["name"].cast(pl.String).unique().to_list()
    if not any(parse(name).kind == "softmax" for name in names):
        return []
    share = float(attention["dur_ns"].sum()) / float(kernels["dur_ns"].sum())
    if share < LEAST_SHARE:
        return []
    text = (
        f"Attention is not fused and has {percent(share)} of kernel time: product, softmax and product run one after "
        "the other, and the scores go through memory. A fused kernel (FlashAttention, scaled_dot_product_attention) "
        "keeps them on chip."
    )
    return [Finding("unfused_attention", text)]


def _repeated_work(trace: Trace) -> list[Finding]:
    return [
        Finding(
            "repeated_work",
            f"{short_name(one.name, NAME_WIDTH)} runs in {one.blocks:.0f} blocks per step; once would do and save "
            f"{duration(one.worth_ns)} per step. {one.basis.capitalize()}.",
            us(one.worth_ns),
        )
        for one in redundancies(trace)
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
    findings = []
    for row in totals.join(largest, on="name", maintain_order="left").iter_rows(named=True):
        kernel = parse(row["name"])
        rows = tile_rows(kernel)
        if kernel.kind != "gemm" or rows is None or rows <= SMALLEST_TILE_ROWS or row["share"] < LEAST_SHARE:
            continue
        padding = 1 - row["m"] / rows
        if padding >= LEAST_PADDING:
            few = f"{row['m']} row" if row["m"] == 1 else f"at most {row['m']} rows"
            findings.append(
                Finding(
                    "tile_padding",
                    f"{short_name(row['name'], NAME_WIDTH)}: a tile of {rows} rows for {few} "
                    f"({padding * 100:.0f} % padding), {row['share'] * 100:.1f} % of kernel time.",
                )
            )
    return findings


def tile_rows(kernel: KernelName) -> int | None:
    """Rows of the tile that run along the tokens; where that may be either side of it, the smaller. None if unknown."""
    if kernel.ambiguous is None:
        return kernel.block_m
    sides = [side for side in (kernel.block_m, kernel.block_n) if side is not None]
    return min(sides) if len(sides) == 2 else None
