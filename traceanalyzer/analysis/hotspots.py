"""Which kernels, roles or families the time goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from traceanalyzer.display import NotebookView
from traceanalyzer.names import KernelName, parse
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

GROUPINGS = ("kernel", "role", "family")
PHASES = ("decode", "prefill", "mixed", "dummy", "unknown")


@dataclass(frozen=True, eq=False)
class Hotspots(NotebookView):
    """Kernel time by group, largest first.

    Attributes:
        rows: name, role, family, count, total_ns, share, mean_ns, p50_ns, p99_ns, per_step_ns, tile, dtypes,
            num_warps. Every kernel is in exactly one row. ``name`` is the group: a kernel's name, a role or a family.
            role, family, tile, dtypes and num_warps are null where a row's kernels have several or tell none; the
            role is the one in complete steps, where the kernel runs in any.
            ``per_step_ns`` is the mean over complete steps that are no dummies; null without such steps.
            ``num_warps`` is the threads of a block in the event over the GPU's warp size.
        copies: copies and memsets: name, count, total_ns. They are not kernels and not in ``rows``.
        total_ns: sum of the kernels' durations.
        steps: complete steps that ``per_step_ns`` rests on; a step on two devices counts twice.
        phase: the phase looked at; null for the whole trace.
        phases: complete steps of the whole trace by phase, as (phase, steps) in order of appearance.
    """

    rows: pl.DataFrame
    copies: pl.DataFrame
    total_ns: int
    steps: int
    phase: str | None
    phases: tuple[tuple[str, int], ...] = ()


def hotspots(trace: Trace, by: str = "kernel", phase: str | None = None, step: int | None = None) -> Hotspots:
    """Rank kernels, roles or families by their total time on all devices of a trace.

    Args:
        trace: one rank's trace.
        by: ``kernel``, ``role`` or ``family``.
        phase: only kernels of the complete steps of this phase; null for every kernel of the trace, those outside
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
    whole = segment(trace).steps.filter("complete").group_by("phase", maintain_order=True).agg(steps=pl.len())
    total, phases = int(kernels["dur_ns"].sum()), tuple(whole.iter_rows())
    return tuple(Hotspots(_rows(kernels, one, steps), copies, total, steps, phase, phases) for one in by)


def select(trace: Trace, phase: str | None = None, step: int | None = None) -> tuple[pl.DataFrame, int]:
    """Return the device events looked at and the number of steps that a mean over steps divides by.

    The events are those of ``Segmentation.events``, of its columns name, device, step, role, dur_ns, thread_block and
    is_kernel, with ``in_average``, true for those of the steps that count: complete ones, of the phase asked for or,
    without one, no dummies.

    Raises:
        ValueError: phase is none of those listed, or the trace has no such step.
    """
    if phase is not None and phase not in PHASES:
        raise ValueError(f"phase must be one of {', '.join(PHASES)}: {phase!r}")
    cut = segment(trace)
    wanted = pl.col("phase") != "dummy" if phase is None else pl.col("phase") == phase
    averaged = cut.steps.filter(pl.col("complete"), wanted)
    if step is not None:
        averaged = cut.steps.filter(pl.col("step") == step)
        if averaged.is_empty():
            raise ValueError(f"the trace has no step {step}: its steps are 0 to {cut.steps['step'].max()!r}")
    keys = averaged.select("device", "step", in_average=pl.lit(True))
    events = (
        cut.events.select("name", "device", "step", "role", "dur_ns", "thread_block", "is_kernel")
        .join(keys, on=["device", "step"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("in_average").fill_null(False))
    )
    if phase is not None or step is not None:
        events = events.filter("in_average")
    return events, averaged.height


def _rows(kernels: pl.DataFrame, by: str, steps: int) -> pl.DataFrame:
    group = {"kernel": pl.col("name"), "role": pl.col("role"), "family": pl.col("family")}[by]
    duration = pl.col("dur_ns")
    in_steps = duration.filter("in_average").sum()

    def only(column: str) -> pl.Expr:
        return pl.when(pl.col(column).n_unique() == 1).then(pl.col(column).first()).alias(column)

    # A step that the recording cuts off has kernels whose place in a block is unknown; they are no second role.
    placed = pl.col("role").filter("in_average")
    role = pl.when(placed.n_unique() == 1).then(placed.first()).when(placed.len() == 0).then(only("role"))

    return (
        kernels.group_by(group.alias("group"))
        .agg(
            role.alias("role"),
            only("family"),
            only("tile"),
            only("dtypes"),
            only("num_warps"),
            count=pl.len(),
            total_ns=duration.sum(),
            mean_ns=duration.mean(),
            p50_ns=duration.quantile(0.5, "linear"),
            p99_ns=duration.quantile(0.99, "linear"),
            per_step_ns=in_steps / steps if steps else pl.lit(None, dtype=pl.Float64),
        )
        # Names become text once a group: as text of every kernel they take most of the memory.
        .with_columns(pl.col("group").cast(pl.String), share=pl.col("total_ns") / pl.col("total_ns").sum())
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
            "dtypes",
            "num_warps",
        )
    )


def name_facts(events: pl.DataFrame) -> pl.DataFrame:
    """One row a distinct name: name, family, tile (as ``tile_text``) and dtypes (as ``dtypes_text``)."""
    distinct = events.select(pl.col("name").unique())
    parsed = [parse(name) for name in distinct["name"].cast(pl.String)]
    return distinct.with_columns(
        family=pl.Series([kernel.family for kernel in parsed], dtype=pl.String),
        tile=pl.Series([tile_text(kernel) for kernel in parsed], dtype=pl.String),
        dtypes=pl.Series([dtypes_text(kernel) for kernel in parsed], dtype=pl.String),
    )


def with_num_warps(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Add num_warps: threads of a block (its first dimension) over the warp size of the kernel's device."""
    sizes = {
        properties["id"]: properties["warpSize"]
        for properties in trace.metadata.device_properties
        if isinstance(properties.get("id"), int) and isinstance(properties.get("warpSize"), int)
    }
    only_size = next(iter(sizes.values())) if len(set(sizes.values())) == 1 else None
    warp_size = pl.col("device").replace_strict(sizes, default=only_size, return_dtype=pl.Int64)
    threads = pl.col("thread_block").cast(pl.String).str.extract(r"^\[\s*(\d+)").cast(pl.Int64)
    whole = (threads % warp_size == 0) & (threads >= warp_size)
    keys = ["device", "thread_block"]
    table = kernels.select(keys).unique().with_columns(num_warps=pl.when(whole).then(threads // warp_size))
    return kernels.join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")


def dtypes_text(kernel: KernelName) -> str | None:
    """Write element types as ``output<-activation x weight``, unknown ones as ``?``; null where the name has none."""
    types = (kernel.dtypes.output, kernel.dtypes.activation, kernel.dtypes.weight)
    if types == (None, None, None):
        return None
    output, activation, weight = ("?" if part is None else part for part in types)
    return f"{output}<-{activation}x{weight}"


def tile_text(kernel: KernelName) -> str | None:
    """Write a kernel's tile as ``MxNxK``; null where its name has none."""
    if kernel.tile is None:
        return None
    return "x".join("?" if part is None else str(part) for part in kernel.tile)
