"""The device events that an analysis looks at: of a phase, of a step, or all."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from traceanalyzer.segment.segmentation import segment
from traceanalyzer.trace import Trace
from traceanalyzer.wording import plural
from traceanalyzer.words import PHASES


def averaged_steps(trace: Trace, phase: str | None = None, step: int | None = None) -> pl.DataFrame:
    """Return the steps that a mean over steps is of: a step, or complete ones of a phase, or all of these but dummies.

    Raises:
        ValueError: phase is none of those listed, or the trace has no such step.
    """
    if phase is not None and phase not in PHASES:
        raise ValueError(f"phase must be one of {', '.join(PHASES)}: {phase!r}")
    steps = segment(trace).steps
    if step is None:
        return steps.filter("complete", pl.col("phase") != "dummy" if phase is None else pl.col("phase") == phase)
    chosen = steps.filter(pl.col("step") == step)
    if chosen.is_empty():
        raise ValueError(f"the trace has no step {step}: its steps are 0 to {steps['step'].max()!r}")
    return chosen


def select(trace: Trace, phase: str | None = None, step: int | None = None) -> tuple[pl.DataFrame, int]:
    """Return the device events looked at and the number of steps that a mean over steps divides by.

    The events are those of ``Segmentation.events``, of its columns name, device, step, role, dur_ns, thread_block and
    is_kernel, with ``in_average``, true for those of the steps that count: complete ones, of the phase asked for or,
    without one, no dummies.

    Raises:
        ValueError: phase is none of those listed, or the trace has no such step.
    """
    averaged = averaged_steps(trace, phase, step)
    cut = segment(trace)
    keys = averaged.select("device", "step", in_average=pl.lit(True))
    events = (
        cut.events.select("name", "device", "step", "role", "dur_ns", "thread_block", "is_kernel")
        .join(keys, on=["device", "step"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("in_average").fill_null(False))
    )
    if phase is not None or step is not None:
        events = events.filter("in_average")
    return events, averaged.height


def lacking_phase(trace: Trace, phase: str) -> str | None:
    """Say that a trace has no complete step of a phase, which steps it has and what to do; None where it has one."""
    steps = segment(trace).steps
    complete = steps.filter("complete")
    if (complete["phase"] == phase).any():
        return None
    if complete.is_empty():
        return f"has no complete {phase} step: {plural(steps.height, 'step')}, none of them complete"
    partial = int((steps["phase"] == phase).sum())
    cut_off = f" ({plural(partial, phase + ' step')} cut off by the recording)" if partial else ""
    there = dict(complete.group_by("phase", maintain_order=True).len().iter_rows())
    counts = f"{plural(complete.height, 'complete step')}: {phase_counts(there)}"
    return f"has no complete {phase} step{cut_off}; it has {counts}. {_instead(there)}"


def phase_counts(there: Mapping[str, int]) -> str:
    """Write steps by phase, such as ``9 decode, 1 prefill``."""
    named = ((count, "of unknown phase" if phase == "unknown" else phase) for phase, count in there.items())
    return ", ".join(f"{count:,} {phase}" for count, phase in named)


def _instead(there: Mapping[str, int]) -> str:
    if "unknown" in there:
        return (
            "Leave out --phase to look at all of them, or pick one with --step. Its engine's step markers or shapes "
            "(record_shapes=True) in the recording would tell their phase"
        )
    most = max(there, key=there.__getitem__)
    return f"Use --phase {most}" if len(there) == 1 else f"Use --phase {most}, or leave it out"


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
