"""Which ranks take part in a call.

Of a collective from its arguments, else from the layout, tested by where its calls end; of a point-to-point transfer
from the stages of the pipeline: which kernel sends, and which receives.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from traceanalyzer.commands.ranks.job_layout import (
    TOGETHER_NS,
    JobLayout,
    neighbours,
    size_ending_together,
    spread_ns,
)

CANDIDATES: dict[str, tuple[str, ...]] = {
    "all_reduce": ("tp", "dp", "ep"),
    "all_gather": ("tp", "ep", "dp"),
    "reduce_scatter": ("tp", "ep", "dp"),
    "all_to_all": ("ep", "dp", "tp"),
    "dispatch": ("ep", "dp", "tp"),
    "combine": ("ep", "dp", "tp"),
}
"""Axes that may explain a kind of collective, the usual one first."""

ANY_AXIS = ("tp", "ep", "dp", "pp")

CALLED = ("kind", "rank", "step", "start_ns", "dur_ns", "counts", "bytes", "event")
"""Columns of the events that pairing needs."""


def calls_of(
    events: pl.DataFrame, layout: JobLayout, ranks: list[int]
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str]]:
    """Return collectives and point-to-point transfers with their groups, and by group how it is known.

    Args:
        events: columns of rank_events.EVENT_COLUMNS and ``event``.
        layout: of the job.
        ranks: those at hand.
    """
    calls = events.filter("is_comm").select(*CALLED, "name", "members", "direction")
    is_transfer = pl.col("kind") == "send_recv"
    transfers = calls.filter(is_transfer)
    rest = calls.filter(~is_transfer)
    if layout.size("pp") < 2:
        # NCCL runs an all-to-all as grouped sends and receives.
        rest = pl.concat([rest, transfers.with_columns(kind=pl.lit("all_to_all"))]).sort("rank", "start_ns")
        transfers = transfers.clear()
    grouped, bases = _with_groups(rest, layout, ranks)
    directed = _pipeline_transfers(transfers, layout)
    bases |= dict.fromkeys(directed["group"].unique().to_list(), "neighbouring stages of the layout")
    return grouped.select("group", *CALLED), directed.select("group", *CALLED), bases


def _with_groups(calls: pl.DataFrame, layout: JobLayout, ranks: Sequence[int]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return collectives with ``group`` (the ranks at hand that share them, as JSON text), and how each is known."""
    stated = calls.filter(pl.col("members").is_not_null())
    unstated = calls.filter(pl.col("members").is_null())
    present = {text: _present(text, ranks) for text in stated["members"].unique().to_list()}
    group = pl.col("members").replace_strict(present, return_dtype=pl.String) if present else pl.col("members")
    parts = [stated.with_columns(group=group)]
    basis = dict.fromkeys(present.values(), "process group in the trace")
    # In order: the first kind of call that has a group says how it is known.
    for (kind, _), own in unstated.group_by("kind", "name", maintain_order=True):
        groups, how = _groups_for(str(kind), own, layout, ranks)
        texts = {rank: json.dumps(list(group)) for rank, group in groups.items()}
        parts.append(own.with_columns(group=pl.col("rank").replace_strict(texts, return_dtype=pl.String)))
        for text in texts.values():
            basis.setdefault(text, how)
    return pl.concat(parts).sort("rank", "start_ns"), basis


def _present(text: str, ranks: Sequence[int]) -> str:
    return json.dumps([rank for rank in json.loads(text) if rank in ranks])


def _groups_for(
    kind: str, own: pl.DataFrame, layout: JobLayout, ranks: Sequence[int]
) -> tuple[dict[int, tuple[int, ...]], str]:
    """The group of every rank that makes these calls, and how it is known."""
    callers = sorted(own["rank"].unique().to_list())
    if not layout.coordinates:
        size = size_ending_together(own, max(ranks) + 1) or max(ranks) + 1
        return neighbours(callers, size), "ranks on which its calls end together (layout unknown)"
    tried = _candidates(kind, layout, callers)
    if not tried:
        return {rank: (rank,) for rank in ranks}, "alone"
    usual = next(iter(tried))
    if len(tried) == 1:
        return tried[usual], f"{usual} group of the layout"
    spreads = {axis: spread_ns(own, groups) for axis, groups in tried.items()}
    measured = {axis: spread for axis, spread in spreads.items() if spread is not None}
    if not measured:
        return tried[usual], f"{usual} group of the layout"
    limit = 2 * min(measured.values()) + TOGETHER_NS
    axis = next(axis for axis, spread in measured.items() if spread <= limit)
    return tried[axis], f"{axis} group of the layout, in which its calls end together"


def _candidates(kind: str, layout: JobLayout, callers: Sequence[int]) -> dict[str, dict[int, tuple[int, ...]]]:
    """Different groupings of the callers that may explain a kind of collective, by axis, the usual one first."""
    tried: dict[str, dict[int, tuple[int, ...]]] = {}
    for axis in (*CANDIDATES.get(kind, ANY_AXIS), "world"):
        groups = layout.groups(axis)
        if any(len(groups[rank]) > 1 for rank in callers) and groups not in tried.values():
            tried[axis] = groups
    return tried


def _pipeline_transfers(calls: pl.DataFrame, layout: JobLayout) -> pl.DataFrame:
    """Return sends and receives with ``group`` (sender and receiver as JSON text), where both ranks are at hand.

    A stage receives from the stage before it and sends to the one after it. Where the trace does not say which kernel
    does what, the first kernels of a step receive (as many as the stage before sends), the others send.
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
