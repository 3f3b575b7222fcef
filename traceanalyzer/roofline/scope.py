"""The kernels looked at: those of complete steps of one phase, with the kind of their block."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.roofline.roofline_result import RooflineError
from traceanalyzer.segment import STEP_SCHEMA, segment
from traceanalyzer.trace import Trace
from traceanalyzer.words import PHASES

STEP = ("device", "step")

COLUMNS = (
    *("index", "name", "start_ns", "dur_ns", "device", "correlation", "external_id", "extra"),
    *("graph", "step", "section", "block", "role"),
)
"""Columns of the events that the roofline needs; every further one would be carried through all of its joins."""


@dataclass(frozen=True, eq=False)
class Scope:
    """What is looked at.

    Attributes:
        steps: rows of ``segment.STEP_SCHEMA``.
        kernels: kernels of those steps, COLUMNS of ``Segmentation.events`` and ``kind``, the kind of the block as
            segmentation tells it; in order of start.
        copies_ns: time of copies and memsets in those steps, of all steps together.
        phase: the phase of the steps; None where they are of several.
    """

    steps: pl.DataFrame
    kernels: pl.DataFrame
    copies_ns: int
    phase: str | None


def scope_of(trace: Trace, phase: str | None, step: int | None, *, every_phase: bool = False) -> Scope:
    """Choose steps and their kernels.

    Args:
        trace: one rank's trace.
        phase: only complete steps of this phase; without it decode steps, or where there are none those of the
            phase that takes most time.
        step: only the step of this index, complete or not.
        every_phase: without phase and step: all complete steps but dummies.

    Raises:
        RooflineError: there is no such step.
    """
    if phase is not None and phase not in PHASES:
        raise RooflineError(f"phase must be one of {', '.join(PHASES)}: {phase!r}")
    cut = segment(trace)
    every = cut.steps if cut.steps.filter(pl.col("kernels") > 0).height else _whole(cut.events)
    steps = _steps(every, phase, step, every_phase)
    blocks = cut.blocks.select("device", "step", "block", "kind")
    events = (
        cut.events.select(*COLUMNS, "is_kernel")
        .join(steps.select(STEP), on=STEP, how="semi", nulls_equal=True)
        .join(blocks, on=[*STEP, "block"], how="left", nulls_equal=True)
        .sort("device", "start_ns", "index")
    )
    phases = steps["phase"].unique().to_list()
    return Scope(
        steps,
        events.filter("is_kernel").drop("is_kernel"),
        int(events.filter(~pl.col("is_kernel"))["dur_ns"].sum()),
        phases[0] if len(phases) == 1 else None,
    )


def _whole(events: pl.DataFrame) -> pl.DataFrame:
    """Take a trace without steps as one step on the device with most kernels, or as none without kernels."""
    kernels = events.filter("is_kernel")
    busiest = kernels.group_by("device").agg(pl.len()).sort("len", "device", descending=[True, False]).head(1)
    own = kernels.join(busiest.select("device"), on="device", how="semi", nulls_equal=True)
    if own.is_empty():
        return pl.DataFrame(schema=STEP_SCHEMA)
    first = int(own["start_ns"].to_numpy().min())
    last = int((own["start_ns"] + own["dur_ns"]).to_numpy().max())
    row = {
        "device": busiest["device"][0],
        "phase": "unknown",
        "complete": True,
        "start_ns": first,
        "end_ns": last,
        "kernels": own.height,
        "kernel_sum_ns": own["dur_ns"].sum(),
        "span_ns": last - first,
        "blocks": 0,
    }
    return pl.DataFrame([{**dict.fromkeys(STEP_SCHEMA), **row}], schema=STEP_SCHEMA)


def _steps(steps: pl.DataFrame, phase: str | None, step: int | None, every_phase: bool) -> pl.DataFrame:
    if step is not None:
        chosen = steps.filter(pl.col("step") == step)
        if chosen.is_empty():
            raise RooflineError(f"the trace has no step {step}: its steps are 0 to {steps['step'].max()!r}")
        return chosen
    complete = steps.filter("complete", pl.col("kernels") > 0)
    if phase is not None:
        chosen = complete.filter(pl.col("phase") == phase)
        if chosen.is_empty():
            known = ", ".join(sorted(complete["phase"].unique().to_list())) or "none"
            raise RooflineError(f"the trace has no complete {phase} step (phases of its complete steps: {known})")
        return chosen
    real = complete.filter(pl.col("phase") != "dummy")
    if real.is_empty():
        real = complete if complete.height else steps.filter(pl.col("kernels") > 0)
    if every_phase or real.is_empty():
        return real
    sums = real.group_by("phase").agg(pl.col("kernel_sum_ns").sum()).sort("kernel_sum_ns", descending=True)
    main = "decode" if "decode" in sums["phase"].to_list() else sums["phase"][0]
    return real.filter(pl.col("phase") == main)
