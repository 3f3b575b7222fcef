"""Which kernels, roles or families the time goes to."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.names import parse
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

GROUPINGS = ("kernel", "role", "family")
PHASES = ("decode", "prefill", "mixed", "dummy", "unknown")


@dataclass(frozen=True, eq=False)
class Hotspots:
    """Kernel time by group, largest first.

    Attributes:
        rows: name, role, family, count, total_ns, share, mean_ns, p50_ns, p99_ns, per_step_ns, tile. Every kernel
            is in exactly one row. ``name`` is the group: a kernel's name, a role or a family.
            role and family are null where a row's kernels have several. ``per_step_ns`` is the mean over complete
            steps that are no dummies; null without such steps.
        copies: copies and memsets: name, count, total_ns. They are not kernels and not in ``rows``.
        total_ns: sum of the kernels' durations.
        steps: complete steps that ``per_step_ns`` rests on; a step on two devices counts twice.
        phase: the phase looked at; null for the whole trace.
    """

    rows: pl.DataFrame
    copies: pl.DataFrame
    total_ns: int
    steps: int
    phase: str | None


def hotspots(trace: Trace, by: str = "kernel", phase: str | None = None) -> Hotspots:
    """Rank kernels, roles or families by their total time on all devices of a trace.

    Args:
        trace: one rank's trace.
        by: ``kernel``, ``role`` or ``family``.
        phase: only kernels of the complete steps of this phase; null for every kernel of the trace, those outside
            of steps included.

    Raises:
        ValueError: by or phase is none of those listed.
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}: {by!r}")
    if phase is not None and phase not in PHASES:
        raise ValueError(f"phase must be one of {', '.join(PHASES)}: {phase!r}")
    cut = segment(trace)
    averaged = cut.steps.filter(
        pl.col("complete"), pl.col("phase") != "dummy" if phase is None else pl.col("phase") == phase
    )
    keys = averaged.select("device", "step", in_average=pl.lit(True))
    events = cut.events.join(keys, on=["device", "step"], how="left", nulls_equal=True, maintain_order="left")
    if phase is not None:
        events = events.filter(pl.col("in_average"))
    steps = averaged.height
    kernels = events.filter("is_kernel").join(_names(events), on="name", how="left", maintain_order="left")
    copies = (
        events.filter(~pl.col("is_kernel"))
        .group_by(pl.col("name").cast(pl.String))
        .agg(count=pl.len(), total_ns=pl.col("dur_ns").sum())
        .sort(["total_ns", "name"], descending=[True, False])
    )
    return Hotspots(_rows(kernels, by, steps), copies, kernels["dur_ns"].sum(), steps, phase)


def _rows(kernels: pl.DataFrame, by: str, steps: int) -> pl.DataFrame:
    group = {"kernel": pl.col("name").cast(pl.String), "role": pl.col("role"), "family": pl.col("family")}[by]
    duration = pl.col("dur_ns")
    in_steps = duration.filter(pl.col("in_average").is_not_null()).sum()

    def only(column: str) -> pl.Expr:
        return pl.when(pl.col(column).n_unique() == 1).then(pl.col(column).first()).alias(column)

    return (
        kernels.group_by(group.alias("group"))
        .agg(
            only("role"),
            only("family"),
            only("tile"),
            count=pl.len(),
            total_ns=duration.sum(),
            mean_ns=duration.mean(),
            p50_ns=duration.quantile(0.5, "linear"),
            p99_ns=duration.quantile(0.99, "linear"),
            per_step_ns=in_steps / steps if steps else pl.lit(None, dtype=pl.Float64),
        )
        .with_columns(share=pl.col("total_ns") / pl.col("total_ns").sum())
        .sort(["total_ns", "group"], descending=[True, False])
        .select(
            pl.col("group").alias("name"),
            "role",
            "family",
            "count",
            "total_ns",
            "share",
            "mean_ns",
            "p50_ns",
            "p99_ns",
            "per_step_ns",
            "tile",
        )
    )


def _names(events: pl.DataFrame) -> pl.DataFrame:
    """One row a distinct name: name, family, tile (``MxNxK``, unknown parts as ``?``; null when the name has none)."""
    distinct = events.select(pl.col("name").unique())
    parsed = [parse(name) for name in distinct["name"].cast(pl.String)]
    tiles = [(p.block_m, p.block_n, p.block_k) for p in parsed]
    return distinct.with_columns(
        family=pl.Series([p.family for p in parsed], dtype=pl.String),
        tile=pl.Series([_tile_text(tile) for tile in tiles], dtype=pl.String),
    )


def _tile_text(tile: tuple[int | None, int | None, int | None]) -> str | None:
    if all(part is None for part in tile):
        return None
    return "x".join("?" if part is None else str(part) for part in tile)
