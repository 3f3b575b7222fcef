"""The columns of the frames in a ``RankComparison``; the comment beside a column is its meaning in the reference."""

from __future__ import annotations

import polars as pl

from traceanalyzer.commands.ranks.causes import CAUSE_SCHEMA

COLLECTIVES: dict[str, pl.DataType] = {
    "kind": pl.Categorical(),  # all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv, ...
    "group": pl.Categorical(),  # its ranks as JSON text
    "calls": pl.Int64(),  # paired calls
    "transfer_ns": pl.Int64(),  # least time over the ranks of each call, summed
    "late_wait_ns": pl.Int64(),  # longest wait of each call, summed: what arriving together could save
    "known_bytes": pl.Int64(),  # message sizes of the calls that record one
    "known_ns": pl.Int64(),  # transfer of those calls
}
"""``RankComparison.collectives``: a row a kind of collective and group of ranks."""

WAITS: dict[str, pl.DataType] = {
    "kind": pl.Categorical(),  # of the collective
    "group": pl.Categorical(),  # its ranks as JSON text
    "rank": pl.Int32(),  # the rank that waited, or was late
    "wait_ns": pl.Int64(),  # its time in these calls beyond their transfer
    "late_calls": pl.Int64(),  # calls that it was the last to arrive at
    "caused_ns": pl.Int64(),  # longest wait of those calls, summed
}
"""``RankComparison.waits``: a row a kind, group and rank."""

CAUSES = CAUSE_SCHEMA
"""``RankComparison.causes``: why ranks arrived late, declared in ``ranks.causes``."""

UNPAIRED: dict[str, pl.DataType] = {
    "group": pl.String(),  # ranks as JSON text
    "kind": pl.String(),  # of the collective
    "rank": pl.Int32(),  # the rank that recorded the calls
    "calls": pl.UInt32(),  # without a partner on the other ranks
}
"""``RankComparison.unpaired``: calls left out of the comparison."""

PER_RANK: dict[str, pl.DataType] = {
    "rank": pl.Int32(),  # of the job
    "stage": pl.Int32(),  # pipeline stage; null where unknown
    "layers": pl.Int64(),  # transformer blocks it runs a step; null where unknown
    "span_ns": pl.Int64(),  # first event to last
    "compute_ns": pl.Int64(),  # time in which a kernel runs that is no communication
    "comm_ns": pl.Int64(),  # time in which a communication kernel runs
    "exposed_comm_ns": pl.Int64(),  # part of it in which no other kernel runs
    "exposed_copy_ns": pl.Int64(),  # time in which only copies or memsets run
    "idle_ns": pl.Int64(),  # time in which nothing runs
}
"""``RankComparison.per_rank``: a row a rank, over the whole recording."""

BY_STEP: dict[str, pl.DataType] = {
    "rank": pl.Int32(),  # of the job
    "step": pl.Int32(),  # step of that rank
    "span_ns": pl.Int64(),  # first event to last
    "compute_ns": pl.Int64(),  # as in per_rank
    "comm_ns": pl.Int64(),  # as in per_rank
    "exposed_comm_ns": pl.Int64(),  # as in per_rank
    "exposed_copy_ns": pl.Int64(),  # as in per_rank
    "idle_ns": pl.Int64(),  # as in per_rank
}
"""``RankComparison.by_step``: a row a rank and complete step that is no dummy."""

PER_STEP: dict[str, pl.DataType] = {
    "rank": pl.Int32(),  # of the job
    "steps": pl.UInt32(),  # rows of by_step that are summed here
    "span_ns": pl.Int64(),  # sum over those steps
    "compute_ns": pl.Int64(),  # sum over those steps
    "comm_ns": pl.Int64(),  # sum over those steps
    "exposed_comm_ns": pl.Int64(),  # sum over those steps
    "exposed_copy_ns": pl.Int64(),  # sum over those steps
    "idle_ns": pl.Int64(),  # sum over those steps
    "wait_ns": pl.Int64(),  # waiting in paired calls of those steps
}
"""``RankComparison.per_step``: the sums of ``by_step`` by rank."""

DUMMIES: dict[str, pl.DataType] = {
    "rank": pl.Int32(),  # of the job
    "steps": pl.Int64(),  # complete steps, dummies included
    "dummy_steps": pl.Int64(),  # steps without requests of its own
    "dummy_ns": pl.Int64(),  # span of those
}
"""``RankComparison.dummies``: ranks that ran a dummy step."""

CALLS: dict[str, pl.DataType] = {
    "group": pl.Categorical(),  # ranks as JSON text
    "kind": pl.Categorical(),  # of the collective
    "call": pl.UInt32(),  # number of the call, the same on all its ranks
    "rank": pl.Int32(),  # whose part of the call this is
    "start_ns": pl.Int64(),  # on the clock common to all ranks
    "dur_ns": pl.Int64(),  # time of the rank's kernel
    "counts": pl.Boolean(),  # in complete steps that are no dummies, on every rank
    "bytes": pl.Int64(),  # message size; null where not recorded
    "event": pl.UInt32(),  # row of the event among those of all ranks
    "transfer_ns": pl.Int64(),  # least time over the ranks of the call
    "late": pl.Int32(),  # rank that arrived last; null where all arrived together
    "wait_ns": pl.Int64(),  # time beyond the transfer
    "step": pl.Int32(),  # step of the rank; null outside of steps
}
"""``RankComparison.calls``: a row a paired call and rank."""

STAGES: dict[str, pl.DataType] = {
    "stage": pl.Int32(),  # number of the pipeline stage
    "ranks": pl.List(pl.Int32()),  # its ranks
    "cycle_ns": pl.Float64(),  # mean time from the start of a step to that of the next
    "work_ns": pl.Float64(),  # kernels but sends and receives, a cycle
    "transfer_ns": pl.Float64(),  # sends and receives without waiting, a cycle
    "wait_ns": pl.Float64(),  # waiting in sends and receives, a cycle
    "steps": pl.Int64(),  # cycles that the means rest on
    "layers": pl.Int64(),  # transformer blocks; null where its ranks disagree or none is at hand
    "idle_ns": pl.Float64(),  # rest of the cycle
    "bubble_share": pl.Float64(),  # share of the cycle in which it neither works nor transfers
}
"""``Pipeline.stages``: a row a pipeline stage."""
