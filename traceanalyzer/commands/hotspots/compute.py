"""Which kernels, roles or families the time goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from traceanalyzer.commands.hotspots.result import HotspotRow
from traceanalyzer.declare import columns
from traceanalyzer.names import parse
from traceanalyzer.names.kernel_text import dtypes_text, tile_text
from traceanalyzer.notebook import NotebookView
from traceanalyzer.segment.selection import averaged_steps, select, with_num_warps
from traceanalyzer.trace import Trace
from traceanalyzer.words import GROUPINGS


@dataclass(frozen=True, eq=False)
class Hotspots(NotebookView):
    """Kernel time by group, largest first.

    Attributes:
        rows: the columns that ``HotspotRow`` declares for frames, times in ns. Every kernel is in exactly one row.
        copies: copies and memsets: name, count, total_ns. They are not kernels and not in ``rows``.
        total_ns: sum of the kernels' durations.
        steps: complete steps that ``per_step_ns`` rests on; a step on two devices counts twice.
        phase: the phase looked at; None for the whole trace.
        phases: steps that means over steps are of, by phase, as (phase, steps) in order of appearance.
        on_cpu: whether compute ops of a CPU stand in for kernels.
    """

    rows: pl.DataFrame
    copies: pl.DataFrame
    total_ns: int
    steps: int
    phase: str | None
    phases: tuple[tuple[str, int], ...] = ()
    on_cpu: bool = False


def hotspots(trace: Trace, by: str = "kernel", phase: str | None = None, step: int | None = None) -> Hotspots:
    """Rank kernels, roles or families by their total time on all devices of a trace.

    Args:
        trace: one rank's trace.
        by: ``kernel``, ``role`` or ``family``.
        phase: only kernels of the complete steps of this phase; None for every kernel of the trace, those outside
            of steps included.
        step: only kernels of the step of this index.

    Raises:
        ValueError: by or phase is none of those listed, or the trace has no such step.
    """
    return rankings(trace, (by,), phase, step)[0]


def rankings(
    trace: Trace, by: Sequence[str], phase: str | None = None, step: int | None = None
) -> tuple[Hotspots, ...]:
    """Rank by several groupings at once; arguments and errors as for ``hotspots``."""
    for one in by:
        if one not in GROUPINGS:
            raise ValueError(f"by must be one of {', '.join(GROUPINGS)}: {one!r}")
    events, steps = select(trace, phase, step)
    kernels = with_num_warps(trace, events.filter("is_kernel").drop("is_kernel", "step")).join(
        name_facts(events), on="name", how="left", maintain_order="left"
    )
    copies = (
        events.filter(~pl.col("is_kernel"))
        .group_by("name")
        .agg(count=pl.len(), total_ns=pl.col("dur_ns").sum())
        .with_columns(pl.col("name").cast(pl.String))
        .sort(["total_ns", "name"], descending=[True, False])
    )
    averaged = averaged_steps(trace, phase, step).group_by("phase", maintain_order=True).agg(steps=pl.len())
    total, phases, on_cpu = int(kernels["dur_ns"].sum()), tuple(averaged.iter_rows()), trace.cpu_only
    return tuple(Hotspots(_rows(kernels, one, steps), copies, total, steps, phase, phases, on_cpu) for one in by)


def _rows(kernels: pl.DataFrame, by: str, steps: int) -> pl.DataFrame:
    group = {"kernel": pl.col("name"), "role": pl.col("role"), "family": pl.col("family")}[by]
    kept = [one for one in columns(HotspotRow) if one.dtype is not None]
    aggregates = {one.frame_name: one.aggregate for one in kept if one.aggregate is not None}
    return (
        kernels.group_by(group.alias("group"))
        .agg(**aggregates)
        .rename({"group": "name"})
        # Names become text once per group: as text of every kernel they take most of the memory.
        .with_columns(
            pl.col("name").cast(pl.String),
            share=pl.col("total_ns") / pl.col("total_ns").sum(),
            per_step_ns=pl.col("per_step_ns") / pl.lit(steps or None, dtype=pl.Float64),
        )
        .sort(["total_ns", "name"], descending=[True, False])
        .select(one.frame_name for one in kept)
    )


def name_facts(events: pl.DataFrame) -> pl.DataFrame:
    """One row per distinct name: name, family, tile (as ``tile_text``) and dtypes (as ``dtypes_text``)."""
    distinct = events.select(pl.col("name").unique())
    parsed = [parse(name) for name in distinct["name"].cast(pl.String)]
    return distinct.with_columns(
        family=pl.Series([kernel.family for kernel in parsed], dtype=pl.String),
        tile=pl.Series([tile_text(kernel) for kernel in parsed], dtype=pl.String),
        dtypes=pl.Series([dtypes_text(kernel) for kernel in parsed], dtype=pl.String),
    )
