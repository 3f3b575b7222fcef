"""The strip of blocks that can be clicked: a cell a block, and behind it the block's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from traceanalyzer.report.html.gather import TraceView
from traceanalyzer.report.html.tables import name_cell
from traceanalyzer.report.text import duration, plural

MOST_STRIPS = 6
LEAST_RANGE = 0.10
"""Share of a block's time that the colours span at least, so that noise is not painted as difference."""


@dataclass(frozen=True)
class BlockCell:
    """One block: median kernel time over the steps; ``heat`` is 0 for the fastest colour, 1 for the slowest."""

    number: int
    variant: str
    kind: str
    time_ns: float
    heat: float
    height: float
    label: str


@dataclass(frozen=True)
class Strip:
    """The blocks of a phase on a device.

    Attributes:
        title: which steps.
        cells: the blocks.
        coldest, hottest: times that the ends of the colours stand for.
        several: whether there are several variants.
        notes: blocks out of line, in words.
        confidence, method: of the segmentation.
        key: of the kernels in ``kernels_of``.
    """

    title: str
    cells: tuple[BlockCell, ...]
    coldest: str
    hottest: str
    several: bool
    notes: tuple[str, ...]
    confidence: float | None
    method: str
    key: str


def strips_of(view: TraceView, prefix: str) -> tuple[list[Strip], dict[str, Any]]:
    """Return the strips of a trace, the main phase first, and the kernels behind their cells.

    The second is ``{"names": [[short, full], ...], "strips": {key: {block: [[name, role, count, ns], ...]}}}``:
    medians over the complete steps.
    """
    strips: list[Strip] = []
    names: dict[str, int] = {}
    kernels: dict[str, Any] = {}
    groups = view.cut.steps.group_by("device", "phase", maintain_order=True)
    ordered = sorted(groups, key=lambda item: (item[0][1] != view.phase, item[0][1] == "dummy"))
    for (device, phase), steps in ordered:
        whole = steps.filter("complete") if steps["complete"].any() else steps
        blocks = view.cut.blocks.join(
            whole.select("device", "step"), on=["device", "step"], nulls_equal=True, how="semi"
        )
        if blocks.is_empty() or len(strips) >= MOST_STRIPS:
            continue
        key = f"{prefix}{len(strips)}"
        strips.append(_strip(view, device, str(phase), whole, blocks, key))
        kernels[key] = _kernels(view.cut.events, blocks, names)
    cells = [name_cell(name) for name in names]
    return strips, {"names": [[cell.text, cell.full or cell.text] for cell in cells], "strips": kernels}


def _strip(
    view: TraceView, device: int | None, phase: str, steps: pl.DataFrame, blocks: pl.DataFrame, key: str
) -> Strip:
    rows = (
        blocks.group_by("block")
        .agg(
            pl.col("variant").mode().sort().first(),
            pl.col("kind").drop_nulls().mode().sort().first(),
            pl.col("kernels", "kernel_sum_ns").median(),
        )
        .sort("block")
    )
    times = [float(time) for time in rows["kernel_sum_ns"]]
    low, high = min(times), max(times)
    middle = (low + high) / 2
    half = max((high - low) / 2, middle * LEAST_RANGE / 2)
    cold, hot = middle - half, middle + half
    kind = "" if phase == "unknown" else f"{phase} "
    partial = "" if steps["complete"].any() else "partial "
    where = "CPU" if device is None else f"GPU {device}"
    over = ", medians" if steps.height > 1 else ""
    confidences = steps["confidence"].drop_nulls().to_list()
    return Strip(
        title=f"{plural(rows.height, 'block')} of {plural(steps.height, partial + kind + 'step')} on {where}{over}",
        cells=tuple(
            BlockCell(
                number=row["block"],
                variant=row["variant"],
                kind=row["kind"] or "",
                time_ns=row["kernel_sum_ns"],
                heat=round((row["kernel_sum_ns"] - cold) / ((hot - cold) or 1.0), 3),
                height=round(row["kernel_sum_ns"] / (high or 1.0), 3),
                label=_label(row),
            )
            for row in rows.iter_rows(named=True)
        ),
        coldest=duration(cold),
        hottest=duration(hot),
        several=rows["variant"].n_unique() > 1,
        notes=tuple(
            f"Block {o.block} is {abs(o.change) * 100:.0f} % {'slower' if o.change > 0 else 'faster'} than its kind "
            f"({o.kind}), because of {name_cell(o.kernel).text} "
            f"({'+' if o.kernel_ns > 0 else '−'}{duration(abs(o.kernel_ns))})."
            for o in view.outliers
            if o.device == device and o.phase == phase
        ),
        confidence=min(confidences) if confidences else None,
        method=", ".join(steps["method"].drop_nulls().unique(maintain_order=True).to_list()),
        key=key,
    )


def _label(row: dict[str, Any]) -> str:
    kind = f", {row['kind']}" if row["kind"] else ""
    return f"Block {row['block']}, variant {row['variant']}{kind}, {duration(row['kernel_sum_ns'])}"


def _kernels(events: pl.DataFrame, blocks: pl.DataFrame, names: dict[str, int]) -> dict[str, list[list[Any]]]:
    """Kernels of every block, most time first; ``names`` collects each name once."""
    keys = ["device", "step", "block"]
    spent = (
        events.filter("is_kernel")
        .join(blocks.select(keys), on=keys, how="semi", nulls_equal=True)
        .group_by(*keys, pl.col("name").cast(pl.String), "role")
        .agg(count=pl.len(), ns=pl.col("dur_ns").sum())
        .group_by("block", "name", "role")
        .agg(pl.col("count", "ns").median())
        .sort("block", "ns", "name", descending=[False, True, False])
    )
    found: dict[str, list[list[Any]]] = {}
    for block, name, role, count, ns in spent.iter_rows():
        number = names.setdefault(name, len(names))
        found.setdefault(str(block), []).append([number, role or "other", count, round(ns)])
    return found
