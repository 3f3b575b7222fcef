"""The whole comparison of ranks: traces in, one frozen result out."""

from __future__ import annotations

import json
from dataclasses import dataclass

import polars as pl

from traceanalyzer.commands.ranks import exposure
from traceanalyzer.commands.ranks.call_groups import calls_of
from traceanalyzer.commands.ranks.clocks import BASE_TIME, Clocks, align
from traceanalyzer.commands.ranks.experts import Experts, find_experts
from traceanalyzer.commands.ranks.job_layout import JobLayout, find_layout
from traceanalyzer.commands.ranks.members import DUPLICATE_RANK, Member, Membership, membership
from traceanalyzer.commands.ranks.pairing import pair
from traceanalyzer.commands.ranks.rank_events import rank_events
from traceanalyzer.commands.ranks.stages import Pipeline, find_pipeline
from traceanalyzer.commands.ranks.waiting import causes, split, totals, waits
from traceanalyzer.notebook import NotebookView
from traceanalyzer.problems import TraceWarning
from traceanalyzer.trace import TraceSet


@dataclass(frozen=True, eq=False)
class RankComparison(NotebookView):
    """Ranks side by side. Times in ns.

    Attributes:
        membership: the ranks analysed, the missing ones, and what was left out.
        layout: dp, pp, tp, ep sizes and each rank's place.
        clocks: how the ranks' clocks were aligned.
        collectives: totals by kind and group, columns of ``CollectiveTotals``.
        waits: by kind, group and rank, columns of ``CollectiveWaits``.
        causes: why ranks arrived late, columns of ``CauseRow``.
        bases: by group, how it is known which ranks share it.
        unpaired: calls without a partner on the other ranks, columns of ``UnpairedRow``.
        per_rank: over the whole recording, columns of ``RankTime``.
        by_step: complete steps that are not dummies, columns of ``RankStep``.
        per_step: their sums by rank, columns of ``RankSteps``.
        pipeline, experts: None where the job has none.
        dummies: ranks that ran a dummy step, columns of ``RankDummies``.
        calls: every paired call and rank, columns of ``RankCall``.
        warnings: why the comparison may mislead; ``warnings_of_job`` adds those of the traces.
    """

    membership: Membership
    layout: JobLayout
    clocks: Clocks
    collectives: pl.DataFrame
    waits: pl.DataFrame
    causes: pl.DataFrame
    bases: dict[str, str]
    unpaired: pl.DataFrame
    per_rank: pl.DataFrame
    by_step: pl.DataFrame
    per_step: pl.DataFrame
    pipeline: Pipeline | None
    experts: Experts | None
    dummies: pl.DataFrame
    calls: pl.DataFrame
    warnings: tuple[TraceWarning, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """The ranks analysed, ascending."""
        return self.membership.members

    @property
    def ranks(self) -> list[int]:
        """Their numbers."""
        return [member.rank for member in self.members]


def compare(traces: TraceSet) -> RankComparison:
    """Compare the ranks of a job.

    Raises:
        TraceError: several traces, and none states its rank.
    """
    chosen = membership(traces)
    members = chosen.members
    ranks = [member.rank for member in members]
    events = rank_events(members).with_row_index("event")
    layout, conflicts = find_layout(members, chosen.world_size, events)
    based = all(member.trace.metadata.base_time_ns is not None for member in members)
    collectives, transfers, bases = calls_of(events, layout, ranks)
    # Clocks can be compared where all files give their base time, or none does (then they share the file clock).
    clocks_agree = based or all(member.trace.metadata.base_time_ns is None for member in members)
    both = pl.concat([collectives, transfers])
    paired, unpaired = pair(both, clocks_agree=clocks_agree)
    # Pairing needs no exact clocks; once calls are paired, their ends give the offsets, which everything below needs.
    clocks = align(paired, ranks, based=based)
    if any(clocks.offsets_ns.values()):
        shift = pl.col("rank").replace_strict(clocks.offsets_ns, return_dtype=pl.Int64)
        events, both, paired = (f.with_columns(pl.col("start_ns") + shift) for f in (events, both, paired))
    calls = split(paired).join(events.select("event", "step"), on="event", how="left", maintain_order="left")
    is_transfer = pl.col("event").is_in(transfers["event"].implode())
    by_step = exposure.exposure(events.filter("counts"), ["rank", "step"])
    layers = exposure.layers_of(members)
    stage_of = {rank: place["pp"] for rank, place in layout.coordinates.items()}
    kernels = events.filter("is_kernel")
    return RankComparison(
        membership=chosen,
        layout=layout,
        clocks=clocks,
        collectives=totals(calls),
        waits=waits(calls),
        causes=causes(kernels, calls.filter(~is_transfer), both.filter(~is_transfer)),
        bases=bases,
        unpaired=unpaired,
        per_rank=exposure.per_rank(events, stage_of, layers),
        by_step=by_step,
        per_step=exposure.per_step(by_step, events, calls, ranks),
        pipeline=find_pipeline(events, calls.filter(is_transfer), layout, layers),
        experts=find_experts(events, calls, stage_of),
        dummies=exposure.dummy_steps(members),
        calls=calls,
        warnings=(*chosen.warnings, *conflicts, *_about_pairs(unpaired, clocks, paired)),
    )


def warnings_of_job(traces: TraceSet, comparison: RankComparison) -> tuple[TraceWarning, ...]:
    """Return everything odd about the traces of a job, each once: the input, the comparison, and each rank's file.

    The input's own warning of a rank that occurs twice is left out: the comparison says which trace it took.
    """
    of_input = [warning for warning in traces.warnings if warning.code != DUPLICATE_RANK]
    own = [
        warning if warning.source else warning.at(member.path)
        for member in comparison.members
        for warning in member.trace.metadata.warnings
    ]
    return tuple(dict.fromkeys([*of_input, *comparison.warnings, *own]))


def _about_pairs(unpaired: pl.DataFrame, clocks: Clocks, paired: pl.DataFrame) -> list[TraceWarning]:
    warnings = []
    shared = unpaired.filter(
        pl.col("group").map_elements(lambda text: len(json.loads(text)) > 1, return_dtype=pl.Boolean)
    )
    if shared.height:
        count = int(shared["calls"].sum())
        message = "communication kernels have no partner on the other ranks of their group and are left out of waiting"
        warnings.append(TraceWarning("unpaired_calls", message, count=count))
    if clocks.unaligned and paired.height and clocks.method != BASE_TIME:
        named = ", ".join(str(rank) for rank in clocks.unaligned)
        warnings.append(
            TraceWarning("clock_unaligned", f"no collective ties the clocks of ranks {named} to the others")
        )
    return warnings
