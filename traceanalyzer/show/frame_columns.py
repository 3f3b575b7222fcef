"""The columns of the frames that analyses return; the comment beside a column is its meaning in the reference."""

from __future__ import annotations

import polars as pl

IDLE_GAPS: dict[str, pl.DataType] = {
    "device": pl.Int32(),  # the GPU
    "start_ns": pl.Int64(),  # end of the last event before the gap, on the clock of the events
    "dur_ns": pl.Int64(),  # length of the gap
    "place": pl.String(),  # between steps, inside step, outside steps
    "cause": pl.String(),  # host (launched during the gap), device (launched before it), unknown (launch not recorded)
    "step": pl.Int32(),  # of the event that ends the gap; null outside of steps
    "block": pl.Int32(),  # of the event that ends the gap; null outside of blocks
    "before": pl.String(),  # name of the event before the gap
    "after": pl.String(),  # name of the event that ends the gap
    "launch_ns": pl.Int64(),  # start of the launch of the event that ends the gap; null when not recorded
    "host_ns": pl.Int64(),  # part of the gap before that launch was issued; null where the launch is unknown
    "correlation": pl.UInt64(),  # ties the event that ends the gap to its launch
}
"""``Idle.gaps``: a row a gap, longest first."""

IDLE_HOST: dict[str, pl.DataType] = {
    "place": pl.String(),  # place of the gaps, as in gaps
    "name": pl.String(),  # what the launching thread ran, the innermost event; null: nothing recorded
    "inside": pl.String(),  # the enclosing annotation; null without one
    "total_ns": pl.Int64(),  # time in gaps that the host caused
}
"""``Idle.host``: what the host did during the gaps it caused; rows add up."""

IDLE_TOTALS: dict[str, pl.DataType] = {
    "device": pl.Int32(),  # the GPU
    "span_ns": pl.Int64(),  # first start to last end of the device's events
    "busy_ns": pl.Int64(),  # length of the union of its events
    "idle_ns": pl.Int64(),  # the rest of the span; null where kernels were not recorded
    "steps": pl.Int64(),  # complete steps
}
"""``Idle.totals``: a row a device."""

DIFF_ROWS: dict[str, pl.DataType] = {
    "section": pl.String(),  # prologue, block or epilogue
    "block_kind": pl.String(),  # kind of the blocks; null outside of blocks and where it has no name
    "role": pl.String(),  # role of the kernel
    "position": pl.Int64(),  # place among the kernels of that role, from 0
    "name_before": pl.String(),  # kernel in the first trace; null: only the second has this position
    "name_after": pl.String(),  # kernel in the second trace; null: only the first has this position
    "blocks": pl.UInt32(),  # blocks of a step that have this position
    "before_ns": pl.Float64(),  # time a step in the first trace; 0 where it lacks the position
    "after_ns": pl.Float64(),  # time a step in the second trace; 0 where it lacks the position
    "delta_ns": pl.Float64(),  # after less before
}
"""``Diff.rows``: a row a kernel position, the largest change first."""

DIFF_MATCHED: dict[str, pl.DataType] = {
    "phase": pl.String(),  # phase of the steps compared
    "requests": pl.Int64(),  # sequences a step; null where unknown or where batches differ
    "steps_before": pl.UInt32(),  # steps of the first trace
    "steps_after": pl.UInt32(),  # steps of the second trace
}
"""``Diff.matched``: the steps that were compared."""

TOP_KERNELS: dict[str, pl.DataType] = {
    "name": pl.String(),  # of the kernel
    "count": pl.UInt32(),  # how often it ran
    "total_ns": pl.Int64(),  # sum of its durations
    "share": pl.Float64(),  # of the durations of all kernels
}
"""``Timeline.top_kernels``: every kernel name, most time first."""

ROOFLINE_KERNELS: dict[str, pl.DataType] = {
    "device": pl.Int32(),  # the GPU
    "step": pl.Int32(),  # step of the kernel
    "index": pl.Int64(),  # position in the file's event list
    "name": pl.String(),  # of the kernel
    "role": pl.String(),  # what it does
    "row": pl.UInt32(),  # the row of Roofline.rows that holds it, from 0
    "dur_ns": pl.Int64(),  # measured
    "floor_ns": pl.Float64(),  # shortest time that the peak roofs allow; null where its work is unknown
    "headroom_ns": pl.Float64(),  # time above floor and launch latency; null where unknown or not plausible
}
"""``Roofline.kernels``: a row a kernel of the steps looked at. The frame holds more columns, which may change."""
