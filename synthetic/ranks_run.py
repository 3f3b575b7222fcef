"""Runs all ranks of a job on one clock: a collective ends on every rank once the last one has come to it."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace

from synthetic.ranks_models import KIND_OF_OP
from synthetic.ranks_spec import CollectiveKind, JobSpec
from synthetic.timeline import DeviceRecord, Timeline

NEXT_BATCH_NS = 30_000
"""From the last stage's last event to the first stage's next step."""

TOGETHER_NS = 100
"""Ranks that arrive within this are not told apart: it is the resolution of a profiler's clock."""


@dataclass(frozen=True)
class CallTruth:
    """One collective as it happened.

    Attributes:
        kind, ranks: what, and who took part (sender and receiver of a transfer).
        index: counts the calls of its kind and ranks.
        step: of the model.
        transfer_ns: from the last arrival to the end.
        wait_ns: by rank, from its arrival to the last one.
        late: the last rank to arrive; None where all came together.
    """

    kind: CollectiveKind
    ranks: tuple[int, ...]
    index: int
    step: int
    transfer_ns: int
    wait_ns: dict[int, int]
    late: int | None


@dataclass
class _Rank:
    """Where a rank stands."""

    records: list[DeviceRecord]
    gaps: list[int]
    position: int = 0
    clock: int = 0
    arrived: int | None = None


def couple(job: JobSpec, timelines: dict[int, Timeline], seed: int) -> tuple[dict[int, Timeline], list[CallTruth]]:
    """Shift the device events of independent timelines so that collectives wait for their last rank.

    Host events move with their step.
    """
    return _Coupling(job, timelines, seed).run()


class _Coupling:
    def __init__(self, job: JobSpec, timelines: dict[int, Timeline], seed: int) -> None:
        self.job = job
        self.timelines = timelines
        self.random = random.Random(seed)
        self.ranks = {rank: _prepared(job, rank, timeline) for rank, timeline in timelines.items()}
        self.done: dict[int, list[DeviceRecord]] = defaultdict(list)
        self.waiting: dict[tuple[CollectiveKind, tuple[int, ...], int], dict[int, int]] = defaultdict(dict)
        self.counted: dict[tuple[int, CollectiveKind, tuple[int, ...]], int] = defaultdict(int)
        self.step_end: dict[tuple[int, int], int] = {}
        self.calls: list[CallTruth] = []

    def run(self) -> tuple[dict[int, Timeline], list[CallTruth]]:
        moved = True
        while moved:
            moved = False
            for rank in self.ranks:
                moved = self._advance(rank) or moved
        stuck = [rank for rank, state in self.ranks.items() if state.position < len(state.records)]
        if stuck:
            raise ValueError(f"ranks {stuck} wait for a collective that never completes")
        return {rank: _moved(self.timelines[rank], self.done[rank]) for rank in self.ranks}, self.calls

    def _advance(self, rank: int) -> bool:
        """Run a rank up to the next collective whose other ranks are not there yet; whether it ran anything."""
        state, moved = self.ranks[rank], False
        while state.position < len(state.records) and state.arrived is None:
            record = state.records[state.position]
            begin = self._begin(rank, record, state)
            if begin is None:
                break
            moved = True
            kind = KIND_OF_OP.get(record.spec.op or "")
            if kind is None:
                self._finish(rank, begin, record.dur_ns)
            else:
                state.arrived = begin
                self._arrive(rank, kind, record, begin)
        return moved

    def _begin(self, rank: int, record: DeviceRecord, state: _Rank) -> int | None:
        """When a record starts; None while the first stage waits for the step that must end before."""
        begin = state.clock + state.gaps[state.position]
        place = self.job.place(rank)
        first = state.position == 0 or state.records[state.position - 1].step != record.step
        before = (record.step or 0) - self.job.in_flight
        if self.job.pp > 1 and place["pp"] == 0 and first and before >= 0:
            last = self.job.rank_at(place["dp"], self.job.pp - 1, place["tp"])
            end = self.step_end.get((last, before))
            if end is None:
                return None
            begin = max(begin, end + NEXT_BATCH_NS)
        return begin

    def _arrive(self, rank: int, kind: CollectiveKind, record: DeviceRecord, begin: int) -> None:
        group = self._group(rank, kind, record)
        key = (rank, kind, group)
        index = self.counted[key]
        self.counted[key] += 1
        there = self.waiting[kind, group, index]
        there[rank] = begin
        if len(there) < len(group):
            return
        last = max(there.values())
        spread = self.job.transfer_jitter * (self.random.random() + self.random.random() - 1.0)
        transfer = max(1, round(self.job.transfer(kind) * 1000 * (1 + spread)))
        waits = {member: last - start for member, start in sorted(there.items())}
        together = max(waits.values()) < TOGETHER_NS
        late = None if together else next(member for member, wait in waits.items() if wait == 0)
        self.calls.append(CallTruth(kind, group, index, record.step or 0, transfer, waits, late))
        for member, start in there.items():
            self.ranks[member].arrived = None
            self._finish(member, start, last + transfer - start)

    def _group(self, rank: int, kind: CollectiveKind, record: DeviceRecord) -> tuple[int, ...]:
        if kind != "send_recv":
            return self.job.group(kind, rank)
        place = self.job.place(rank)
        other = place["pp"] + (1 if record.spec.op == "c10d::send" else -1)
        peer = self.job.rank_at(place["dp"], other, place["tp"])
        return (min(rank, peer), max(rank, peer))

    def _finish(self, rank: int, begin: int, dur: int) -> None:
        state = self.ranks[rank]
        record = state.records[state.position]
        self.done[rank].append(replace(record, start_ns=begin, dur_ns=dur))
        state.clock = begin + dur
        state.position += 1
        if state.position == len(state.records) or state.records[state.position].step != record.step:
            self.step_end[rank, record.step or 0] = state.clock


def _prepared(job: JobSpec, rank: int, timeline: Timeline) -> _Rank:
    """Durations with what makes the rank slow, and the gaps between its events."""
    records: list[DeviceRecord] = []
    gaps: list[int] = []
    end = 0
    for record in timeline.device:
        gaps.append(max(0, record.start_ns - end))
        end = record.start_ns + record.dur_ns
        dur = record.dur_ns
        if record.spec.role in {"moe_gate_up", "moe_down"}:
            dur = round(dur * job.expert_load.get(rank, 1.0))
        for straggler in job.stragglers:
            if (
                straggler.rank == rank
                and straggler.role == record.spec.role
                and not (record.step or 0) % straggler.every
            ):
                extra = round(straggler.extra_us * 1000)
                if straggler.idle:
                    gaps[-1] += extra
                else:
                    dur += extra
        records.append(replace(record, dur_ns=dur))
    return _Rank(records, gaps)


def _moved(timeline: Timeline, done: list[DeviceRecord]) -> Timeline:
    """The timeline with its device events where they ran, and each step's host events moved as its first event was."""
    shift: dict[int, int] = {}
    for before, after in zip(timeline.device, done, strict=True):
        if before.step is not None:
            shift.setdefault(before.step, max(0, after.start_ns - before.start_ns))
    steps = tuple(
        replace(
            step,
            start_ns=step.start_ns + shift.get(step.index, 0),
            marker_end_ns=step.marker_end_ns + shift.get(step.index, 0),
            end_ns=step.end_ns + shift.get(step.index, 0),
        )
        for step in timeline.steps
    )
    launches = tuple(
        replace(
            launch,
            op_start_ns=launch.op_start_ns + shift.get(launch.step, 0),
            start_ns=launch.start_ns + shift.get(launch.step, 0),
        )
        for launch in timeline.launches
    )
    end = max([timeline.end_ns, *(record.start_ns + record.dur_ns + 50_000 for record in done)])
    return replace(timeline, steps=steps, launches=launches, device=tuple(done), end_ns=end)
