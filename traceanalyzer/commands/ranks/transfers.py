"""Point-to-point transfers of a pipeline: which kernel sends, which receives, and between which ranks."""

from __future__ import annotations

import json

import polars as pl

from traceanalyzer.commands.ranks.job_layout import JobLayout


def pipeline_transfers(calls: pl.DataFrame, layout: JobLayout) -> pl.DataFrame:
    """Give every send and receive its pair of ranks.

    A stage receives from the stage before it and sends to the one after it. Where the trace does not say which kernel
    does what, the first kernels of a step receive (as many as the stage before sends), the others send.

    Args:
        calls: rank, step, direction, start_ns of the point-to-point kernels, in order of start on each rank.
        layout: of the job.

    Returns:
        The rows whose pair is at hand, with ``group`` (sender and receiver as JSON text) and ``direction``.
    """
    chains = sorted(set(layout.groups("pp").values()))
    parts = []
    for chain in chains:
        stages = {rank: layout.coordinates[rank]["pp"] for rank in chain}
        by_stage = {stage: rank for rank, stage in stages.items()}
        # From the first stage on: what a stage sends tells how many kernels of the next one receive.
        sent = 0
        for stage in range(layout.size("pp")):
            rank = by_stage.get(stage)
            if rank is None:
                sent = 0
                continue
            own = _directed(calls.filter(pl.col("rank") == rank), stage, layout.size("pp"), received=sent)
            sends = own.filter(pl.col("direction") == "send")
            sent = _per_step(sends)
            after, before = by_stage.get(stage + 1), by_stage.get(stage - 1)
            if after is not None:
                parts.append(sends.with_columns(group=pl.lit(json.dumps([rank, after]))))
            if before is not None:
                receives = own.filter(pl.col("direction") == "recv")
                parts.append(receives.with_columns(group=pl.lit(json.dumps([before, rank]))))
    if not parts:
        return calls.clear().with_columns(group=pl.lit(None, dtype=pl.String))
    return pl.concat(parts).sort("rank", "start_ns")


def _directed(own: pl.DataFrame, stage: int, stages: int, *, received: int) -> pl.DataFrame:
    """Fill in directions that the trace does not state."""
    last = stage == stages - 1
    in_step = pl.int_range(pl.len()).over("step")
    if stage == 0:
        guessed = pl.lit("send")
    elif not received:
        # The stage before is not at hand: only the last stage is sure to receive alone.
        guessed = pl.lit("recv" if last else None, dtype=pl.String)
    else:
        guessed = pl.when(in_step < received).then(pl.lit("recv")).otherwise(pl.lit(None if last else "send"))
    return own.with_columns(direction=pl.coalesce("direction", guessed))


def _per_step(sends: pl.DataFrame) -> int:
    """Sends of a whole step: the most common count."""
    counts = sends.filter(pl.col("step").is_not_null()).group_by("step").len()["len"]
    return 0 if counts.is_empty() else int(counts.mode().max())  # type: ignore[arg-type]
