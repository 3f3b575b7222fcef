"""The strip of blocks that can be clicked: a cell per block, which shows the block's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from traceanalyzer.commands.report.gather import TraceView
from traceanalyzer.commands.report.page_tables import name_cell
from traceanalyzer.segment.outliers import Outlier
from traceanalyzer.show.step_groups import StepGroup, step_groups
from traceanalyzer.wording import MINUS, duration, plural, signed

MOST_STRIPS = 6
"""Strips on a page; steps of further devices, phases and depths have none."""
LEAST_RANGE = 0.10
"""Share of a block's time that the colours span at least, so that noise does not look like a difference; chosen."""


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
    """The blocks of steps that are alike: those of one device, phase and depth.

    Attributes:
        title: which steps.
        cells: the blocks.
        coldest, hottest: times that the ends of the colours stand for.
        several: whether there are several variants.
        notes: outlier blocks, in words.
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
    kind: ClassVar[str] = "strip"


def strips_of(view: TraceView, prefix: str) -> tuple[list[Strip], dict[str, Any]]:
    """Return the strips of a trace, the main phase first, and the kernels of their cells.

    The second is ``{"names": [[short, full], ...], "strips": {key: {block: [[name, role, count, ns], ...]}}}``:
    medians over the complete steps.
    """
    strips: list[Strip] = []
    names: dict[str, int] = {}
    kernels: dict[str, Any] = {}
    shown = [group for group in step_groups(view.cut) if group.blocks["kernel_sum_ns"].count()]
    shown.sort(key=lambda group: (group.phase != view.phase, group.phase == "dummy"))
    for group in shown[:MOST_STRIPS]:
        key = f"{prefix}{len(strips)}"
        strips.append(_strip(group, group.own(view.outliers), key))
        kernels[key] = _kernels(view.cut.events, group.blocks, names)
    cells = [name_cell(name) for name in names]
    return strips, {"names": [[cell.text, cell.full or cell.text] for cell in cells], "strips": kernels}


def _strip(group: StepGroup, outliers: list[Outlier], key: str) -> Strip:
    # A damaged trace may hold blocks whose kernels have no usable time.
    rows, steps = group.by_block().drop_nulls("kernel_sum_ns"), group.shown
    times = [float(time) for time in rows["kernel_sum_ns"]]
    low, high = min(times), max(times)
    middle = (low + high) / 2
    half = max((high - low) / 2, middle * LEAST_RANGE / 2)
    cold, hot = middle - half, middle + half
    kind = "" if group.phase == "unknown" else f"{group.phase} "
    partial = "" if group.complete else "partial "
    where = "CPU" if group.device is None else f"GPU {group.device}"
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
            f"({signed(o.kernel_ns, MINUS)})."
            for o in outliers
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
        events.select(*keys, "name", "role", "dur_ns", "is_kernel")
        .filter("is_kernel")
        .join(blocks.select(keys), on=keys, how="semi", nulls_equal=True)
        .group_by(*keys, "name", "role")
        .agg(count=pl.len(), ns=pl.col("dur_ns").sum())
        .group_by("block", "name", "role")
        .agg(pl.col("count", "ns").median())
        .with_columns(pl.col("name").cast(pl.String))
        .sort("block", "ns", "name", descending=[False, True, False])
    )
    by_block: dict[str, list[list[Any]]] = {}
    for block, name, role, count, ns in spent.iter_rows():
        number = names.setdefault(name, len(names))
        by_block.setdefault(str(block), []).append([number, role or "other", count, round(ns)])
    return by_block
