"""Synthetic profiles of jobs of many ranks, with ground truth by construction.

`generate_job(job)` gives one document a rank, named as an engine would, and the truth about waiting, late ranks,
stages and experts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthetic.generate import NOTE, write_document
from synthetic.layout import lay_out
from synthetic.ranks_models import KIND_OF_OP, model_of
from synthetic.ranks_run import CallTruth, couple
from synthetic.ranks_spec import CollectiveKind, JobSpec, Straggler
from synthetic.spec import ROLES, StepSpec, TraceSpec
from synthetic.timeline import DeviceRecord, Timeline, run

__all__ = [
    "CallTruth",
    "CollectiveTruth",
    "JobSpec",
    "JobTruth",
    "Straggler",
    "SyntheticJob",
    "generate_job",
    "write_job",
]

COLLECTIVE_NAMES: dict[str, str] = {
    "c10d::allreduce_": "allreduce",
    "c10d::send": "send",
    "c10d::recv_": "recv",
    "deep_ep::dispatch": "dispatch",
    "deep_ep::combine": "combine",
}


@dataclass(frozen=True)
class CollectiveTruth:
    """Sums over the calls of one kind and group that every rank recorded, ns."""

    kind: CollectiveKind
    ranks: tuple[int, ...]
    calls: int
    transfer_ns: int
    wait_ns: dict[int, int]
    late_calls: dict[int, int]


@dataclass(frozen=True)
class JobTruth:
    """What is true of a job.

    Attributes:
        collectives: by kind and ranks; of recorded calls whose ranks are all at hand.
        calls: every call, recorded or not.
        layers: by rank.
        expert_ns: by rank, time of expert products in recorded steps, dummies included.
        bubble_share: of the stages' cycles between recorded steps, the part without work or transfer; None
            without a pipeline or with one step.
        dummy_steps: by rank.
    """

    collectives: tuple[CollectiveTruth, ...]
    calls: tuple[CallTruth, ...]
    layers: dict[int, int]
    expert_ns: dict[int, int]
    bubble_share: float | None
    dummy_steps: dict[int, int]


@dataclass(frozen=True)
class SyntheticJob:
    """One document a rank, by file name, and the truth."""

    documents: dict[str, dict[str, Any]]
    truth: JobTruth


def generate_job(job: JobSpec, seed: int = 0) -> SyntheticJob:
    """Generate the traces of a job; the same arguments give the same traces everywhere.

    Raises ValueError where a straggler is of no rank of the job, or of a role that there is not.
    """
    for straggler in job.stragglers:
        if straggler.rank not in range(job.world_size):
            raise ValueError(f"a straggler is rank {straggler.rank}; the job has ranks 0 to {job.world_size - 1}")
        if straggler.role not in ROLES:
            raise ValueError(f"role {straggler.role!r} is none of {', '.join(ROLES)}")
    specs = {rank: _spec(job, rank) for rank in range(job.world_size)}
    alone = {rank: run(spec, seed + 1000 * rank) for rank, spec in specs.items()}
    timelines, calls = couple(job, alone, seed)
    documents = {
        _file_name(job, rank): _document(job, rank, specs[rank], timelines[rank])
        for rank in specs
        if rank not in job.absent
    }
    return SyntheticJob(documents, _truth(job, timelines, calls))


def write_job(job: SyntheticJob, directory: Path) -> Path:
    """Write every rank's document to a directory, gzip-compressed; returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in job.documents.items():
        write_document(document, directory / name)
    return directory


def _spec(job: JobSpec, rank: int) -> TraceSpec:
    place = job.place(rank)
    idle = {step for dp, step in job.dummies if dp == place["dp"]}
    steps = tuple(
        StepSpec() if number in idle else StepSpec(generation_requests=job.batch) for number in range(job.steps)
    )
    return TraceSpec(
        model=model_of(job, rank),
        steps=steps,
        rank=rank,
        world_size=job.world_size,
        device_id=place["tp"],
        pid=4100 + rank,
        jitter=job.jitter,
        start_us=1_000_000,
    )


def _file_name(job: JobSpec, rank: int) -> str:
    place = job.place(rank)
    if job.naming == "rank":
        return f"rank{rank}.{1_767_225_600_000_000_000 + rank}.pt.trace.json.gz"
    expert = place["dp"] * job.tp + place["tp"]
    if job.naming == "sglang":
        words = [f"TP-{place['tp']}"]
        words += [f"DP-{place['dp']}"] if job.dp > 1 else []
        words += [f"PP-{place['pp']}"] if job.pp > 1 else []
        words += [f"EP-{expert}"] if job.expert_parallel else []
        return f"1767225600.5-{'-'.join(words)}.trace.json.gz"
    stem = f"dp{place['dp']}_pp{place['pp']}_tp{place['tp']}_dcp0_ep{expert}_rank{rank}"
    return f"{stem}.{1_767_225_600_000_000_000 + rank}.pt.trace.json.gz"


def _document(job: JobSpec, rank: int, spec: TraceSpec, timeline: Timeline) -> dict[str, Any]:
    first = job.first_step.get(rank, 0)
    base = job.base_offset_ns.get(rank, 0)
    shown = _shifted(_recorded(timeline, first), job.clock_error_ns.get(rank, 0) - base)
    laid = lay_out(replace(spec, base_time_ns=spec.base_time_ns + base), shown, shown.device)
    if job.states_groups:
        for index, record in laid.placed:
            op = record.spec.op or ""
            if op in KIND_OF_OP:
                laid.document["traceEvents"][index]["args"] |= _group_args(job, rank, op)
    return {"synthetic": True, "note": NOTE, **laid.document}


def _group_args(job: JobSpec, rank: int, op: str) -> dict[str, Any]:
    """Arguments that PyTorch's NCCL backend gives a kernel; message: the hidden states of a step in bf16."""
    place, kind = job.place(rank), KIND_OF_OP[op]
    elements = job.batch * 4096
    peers: dict[str, Any] = {}
    group: tuple[int, ...]
    if kind == "send_recv":
        group = tuple(job.rank_at(place["dp"], stage, place["tp"]) for stage in range(job.pp))
        other = group[place["pp"] + (1 if op == "c10d::send" else -1)]
        peers = {"Dst Rank" if op == "c10d::send" else "Src Rank": other}
    else:
        group = job.group(kind, rank)
    return {
        "Collective name": COLLECTIVE_NAMES[op],
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": len(group),
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "3",
        "Process Group Description": "undefined",
        "Process Group Ranks": str(list(group)),
        **peers,
    }


def _recorded(timeline: Timeline, first: int) -> Timeline:
    """The part of a timeline from a step on."""
    if not first:
        return timeline
    return replace(
        timeline,
        steps=tuple(step for step in timeline.steps if step.index >= first),
        launches=tuple(launch for launch in timeline.launches if launch.step >= first),
        device=tuple(record for record in timeline.device if record.step is None or record.step >= first),
        start_ns=min(step.start_ns for step in timeline.steps if step.index >= first) - 20_000,
    )


def _shifted(timeline: Timeline, by: int) -> Timeline:
    """Everything later by so many ns."""
    return replace(
        timeline,
        steps=tuple(
            replace(s, start_ns=s.start_ns + by, marker_end_ns=s.marker_end_ns + by, end_ns=s.end_ns + by)
            for s in timeline.steps
        ),
        launches=tuple(
            replace(launch, op_start_ns=launch.op_start_ns + by, start_ns=launch.start_ns + by)
            for launch in timeline.launches
        ),
        device=tuple(replace(record, start_ns=record.start_ns + by) for record in timeline.device),
        start_ns=timeline.start_ns + by,
        end_ns=timeline.end_ns + by,
    )


def _truth(job: JobSpec, timelines: dict[int, Timeline], calls: list[CallTruth]) -> JobTruth:
    ranks = range(job.world_size)
    return JobTruth(
        collectives=_collective_truths(job, calls),
        calls=tuple(calls),
        layers={rank: job.layers_of(job.place(rank)["pp"]) for rank in ranks},
        expert_ns={rank: _expert_ns(job, rank, timelines[rank]) for rank in ranks} if job.expert_parallel else {},
        bubble_share=_bubble_share(job, timelines, calls) if job.pp > 1 and job.steps > 1 else None,
        dummy_steps={
            rank: count for rank in ranks if (count := sum(dp == job.place(rank)["dp"] for dp, _ in job.dummies))
        },
    )


def _collective_truths(job: JobSpec, calls: list[CallTruth]) -> tuple[CollectiveTruth, ...]:
    by_group: dict[tuple[CollectiveKind, tuple[int, ...]], list[CallTruth]] = defaultdict(list)
    for call in calls:
        recorded = all(job.first_step.get(rank, 0) <= call.step for rank in call.ranks)
        if recorded and not set(call.ranks) & set(job.absent):
            by_group[call.kind, call.ranks].append(call)
    return tuple(
        CollectiveTruth(
            kind=kind,
            ranks=ranks,
            calls=len(own),
            transfer_ns=sum(call.transfer_ns for call in own),
            wait_ns={rank: sum(call.wait_ns[rank] for call in own) for rank in ranks},
            late_calls={rank: n for rank in ranks if (n := sum(call.late == rank for call in own))},
        )
        for (kind, ranks), own in sorted(by_group.items())
    )


def _expert_ns(job: JobSpec, rank: int, timeline: Timeline) -> int:
    first = job.first_step.get(rank, 0)
    return sum(
        record.dur_ns
        for record in timeline.device
        if record.spec.role in {"moe_gate_up", "moe_down"} and record.step is not None and record.step >= first
    )


def _is_transfer(record: DeviceRecord) -> bool:
    return KIND_OF_OP.get(record.spec.op or "") == "send_recv"


def _bubble_share(job: JobSpec, timelines: dict[int, Timeline], calls: list[CallTruth]) -> float:
    """Mean over stages of 1 - (work + transfer) / cycle, where cycles reach from step to step."""
    shares: dict[int, list[float]] = defaultdict(list)
    for rank, timeline in timelines.items():
        kernels = [record for record in timeline.device if record.spec.category == "kernel"]
        starts = {step: min(r.start_ns for r in kernels if r.step == step) for step in range(job.steps)}
        cycle = work = 0
        for step in range(job.steps - 1):
            cycle += starts[step + 1] - starts[step]
            work += sum(r.dur_ns for r in kernels if r.step == step and not _is_transfer(r))
            work += sum(c.transfer_ns for c in calls if c.kind == "send_recv" and rank in c.ranks and c.step == step)
        shares[job.place(rank)["pp"]].append(1 - work / cycle)
    return sum(sum(own) / len(own) for own in shares.values()) / len(shares)
