"""The device events that an analysis looks at: of a phase, of a step, or all."""

from __future__ import annotations

import polars as pl

from traceanalyzer.segment.segmentation import segment
from traceanalyzer.trace import Trace
from traceanalyzer.words import PHASES


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
