"""What segmentation yields: every device event placed in a step, a section, a block and a role."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceanalyzer.notebook import NotebookView
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment.letters import letters
from traceanalyzer.segment.recorded_work import RecordedWork

PASS_SCHEMA: dict[str, pl.DataType] = {
    "kind": pl.String(),  # main, draft, micro_batch
    "blocks": pl.Int64(),  # blocks that it goes through
    "event_sum_ns": pl.Int64(),  # sum of the durations of the kernels, copies and memsets in them
}
"""One value of the column passes of STEP_SCHEMA."""

STEP_SCHEMA: dict[str, pl.DataType] = {
    "device": pl.Int32(),  # null in a CPU-only trace
    "step": pl.Int32(),  # 0, 1, ... in time order within the device
    "label": pl.String(),  # the marker's text, or null where there is none
    "source": pl.String(),  # vllm, sglang, profiler_step, python, graph_launch, inferred
    "phase": pl.String(),  # decode, prefill, mixed, dummy, forward, training, unknown
    "phase_source": pl.String(),  # marker, inferred; null where the phase is unknown
    "phase_confidence": pl.Float64(),  # that an inferred phase is right, 0 to 1; null where none was inferred
    "complete": pl.Boolean(),  # false: cut off by the start or end of the recording
    "requests": pl.Int64(),  # sequences; null where unknown
    "tokens": pl.Int64(),  # new tokens; null where unknown
    "kv_tokens": pl.Int64(),  # tokens of all contexts, new ones included; null where the marker does not tell
    "start_ns": pl.Int64(),  # first device event of the step's longest gap-free run, not a stray early one
    "end_ns": pl.Int64(),  # end of its last device event
    "events": pl.Int64(),  # kernels, copies and memsets
    "kernels": pl.Int64(),  # kernels of the step
    "kernel_sum_ns": pl.Int64(),  # sum of the kernels' durations
    "busy_ns": pl.Int64(),  # length of the union of the kernels' intervals
    "span_ns": pl.Int64(),  # from start to end
    "idle_before_ns": pl.Int64(),  # pause between the step before and this one; null for the first
    "blocks": pl.Int64(),  # transformer blocks: each layer of the main model once, however many passes run
    "passes": pl.List(pl.Struct(PASS_SCHEMA)),  # in order; one is main, others a draft model's or micro-batches
    "period_blocks": pl.Int64(),  # blocks after which the variants repeat; null without blocks
    "method": pl.String(),  # modules, pattern, or null when no blocks were found
    "confidence": pl.Float64(),  # that the blocks are right, 0 to 1; null when none were found
}
"""One row per step and device."""

BLOCK_SCHEMA: dict[str, pl.DataType] = {
    "device": pl.Int32(),  # null in a CPU-only trace
    "step": pl.Int32(),  # number of the step, as in steps
    "block": pl.Int32(),  # 0, 1, ... in order within the step
    "variant": pl.String(),  # blocks of the same content share one
    "kind": pl.String(),  # sliding, full, dense, moe, mamba, ... where known
    "first_kernel": pl.String(),  # name of its first kernel
    "start_ns": pl.Int64(),  # start of its first device event
    "end_ns": pl.Int64(),  # end of its last device event
    "events": pl.Int64(),  # kernels, copies and memsets
    "kernels": pl.Int64(),  # kernels of the block
    "kernel_sum_ns": pl.Int64(),  # sum of the kernels' durations
    "busy_ns": pl.Int64(),  # length of the union of the kernels' intervals
}
"""One row per block, step and device."""

PLACEMENT_SCHEMA: dict[str, pl.DataType] = {
    "launch_ns": pl.Int64(),  # start of the launch on the host; null when the recording lacks it
    "graph": pl.Boolean(),  # launched together with others by one graph launch
    "step": pl.Int32(),  # null: outside of any step
    "section": pl.String(),  # prologue, block, epilogue; null outside of steps and beside the model
    "block": pl.Int32(),  # number of the block; null outside of blocks
    "role": pl.String(),  # what it does, such as attention or moe_down; other where unknown
}
"""Columns that segmentation adds to ``Trace.device_events``."""


@dataclass(frozen=True, eq=False)
class Segmentation(NotebookView):
    """A trace cut up.

    Attributes:
        steps: columns of STEP_SCHEMA, ordered by device and step.
        blocks: columns of BLOCK_SCHEMA, ordered by device, step and block.
        events: ``Trace.device_events`` with the columns of PLACEMENT_SCHEMA: each device event exactly once.
        warnings: what was uncertain or left out.
        workload: what the trace was recorded of.
    """

    steps: pl.DataFrame
    blocks: pl.DataFrame
    events: pl.DataFrame
    warnings: tuple[TraceWarning, ...] = ()
    workload: RecordedWork = field(default_factory=RecordedWork)

    def only(self, *, step: int | None = None, phase: str | None = None, device: int | None = None) -> Segmentation:
        """Return the steps of a number, phase or device, with their blocks and events; None means any."""
        wanted = {"step": step, "phase": phase, "device": device}
        filters = [pl.col(name) == value for name, value in wanted.items() if value is not None]
        if not filters:
            return self
        steps = self.steps.filter(filters)
        keys = ["device", "step"]
        chosen = steps.select(keys)
        blocks, events = (
            frame.join(chosen, on=keys, how="semi", nulls_equal=True, maintain_order="left")
            for frame in (self.blocks, self.events)
        )
        blocks = blocks if step is None else relettered(blocks, steps)
        return Segmentation(steps, blocks, events, self.warnings, self.workload)


def relettered(blocks: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return the blocks with their variants named A, B, ... by appearance among the steps given, by phase and depth."""
    keys, space = ["device", "step"], ["device", "phase", "depth"]
    placed = blocks.join(
        steps.select(*keys, "phase", depth="blocks"), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    seen = placed.select(*space, "variant").unique(maintain_order=True)
    named = seen.with_columns(number=(pl.col("variant").cum_count().over(space) - 1))
    letter = pl.col("number").map_elements(letters, return_dtype=pl.String)
    renamed = placed.join(named, on=[*space, "variant"], how="left", nulls_equal=True, maintain_order="left")
    return renamed.with_columns(variant=letter).select(blocks.columns)
