"""Which traces stand for which rank: one trace per rank, with what was left out and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace, TraceSet

DUPLICATE_RANK = "duplicate_rank"
"""Code of the warning that several traces claim a rank; ingest uses it too, where none of them has been chosen."""


@dataclass(frozen=True, eq=False)
class Member:
    """One rank of the job.

    Attributes:
        rank: its number in the job.
        trace: its profile.
        device: the device of that profile that is looked at; None in a CPU-only trace.
    """

    rank: int
    trace: Trace
    device: int | None

    @property
    def path(self) -> str:
        """The file it was read from."""
        return self.trace.metadata.source.path


@dataclass(frozen=True, eq=False)
class Membership:
    """The ranks to analyse, in ascending order, and what speaks against the choice.

    Attributes:
        members: one trace per rank.
        world_size: ranks of the job, missing ones included.
        missing: ranks without a trace.
    """

    members: tuple[Member, ...]
    world_size: int
    missing: tuple[int, ...]
    warnings: tuple[TraceWarning, ...]


def membership(traces: TraceSet) -> Membership:
    """Choose one trace per rank.

    Traces that were not recorded at the same time belong to different profiles: the profile with the most ranks
    is taken, of equal ones the latest. Where two traces of one profile claim the same rank, the first is taken.
    Traces of unknown rank are left out, unless there is only one trace.

    Raises:
        TraceError: no trace states its rank, and there are several.
    """
    given = tuple(traces)
    if len(given) == 1:
        return _single(given[0], traces)
    known = [trace for trace in given if trace.rank is not None]
    warnings = [_unknown(trace) for trace in given if trace.rank is None]
    if not known:
        raise TraceError(
            given[0].metadata.source.path if given else "(no trace)",
            "no trace states its rank, in distributedInfo or its file name: name the files rank0..., rank1...",
        )
    profile, odd = _one_profile(known)
    warnings += odd
    chosen, odd = _one_each(profile)
    warnings += odd
    members = []
    for trace in chosen:
        device, odd = _device(trace)
        warnings += odd
        members.append(Member(trace.rank or 0, trace, device))
    ranks = {member.rank for member in members}
    size = traces.world_size
    missing = tuple(rank for rank in range(size) if rank not in ranks)
    return Membership(tuple(members), size, missing, tuple(warnings))


def _single(trace: Trace, traces: TraceSet) -> Membership:
    """A lone trace: its devices count as ranks where one process drove several."""
    devices = _devices(trace)
    if len(devices) > 1:
        warning = TraceWarning(
            "devices_as_ranks",
            f"one trace with {len(devices)} devices: each device counts as a rank",
            source=trace.metadata.source.path,
            count=len(devices),
        )
        members = tuple(Member(number, trace, device) for number, device in enumerate(devices))
        return Membership(members, len(members), (), (warning,))
    member = Member(trace.rank or 0, trace, devices[0] if devices else None)
    return Membership((member,), traces.world_size, tuple(traces.missing_ranks), ())


def _unknown(trace: Trace) -> TraceWarning:
    message = "left out: its rank is unknown, as neither distributedInfo nor the file name states it"
    return TraceWarning("rank_unknown", message, source=trace.metadata.source.path)


def _window(trace: Trace) -> tuple[int, int]:
    """Start and end in ns of Unix time (of the file clock, where the file gives no base time)."""
    origin = (trace.metadata.base_time_ns or 0) + trace.metadata.base_ns
    events = trace.device_events
    start, end = events["start_ns"].min(), (events["start_ns"] + events["dur_ns"]).max()
    first = start if isinstance(start, int) else 0
    last = end if isinstance(end, int) else 0
    return origin + first, origin + last


def _one_profile(traces: list[Trace]) -> tuple[list[Trace], list[TraceWarning]]:
    """Split traces that were recorded at different times, where ranks would otherwise occur twice."""
    ranks = [trace.rank for trace in traces]
    based = all(trace.metadata.base_time_ns is not None for trace in traces)
    profiles = _recorded_together(traces) if based and len(set(ranks)) < len(ranks) else []
    if len(profiles) < 2:
        return traces, []
    # The most ranks, of equal ones the latest.
    best = max(range(len(profiles)), key=lambda i: (len({trace.rank for trace in profiles[i]}), i))
    left_out = [trace for i, profile in enumerate(profiles) if i != best for trace in profile]
    names = ", ".join(trace.metadata.source.path for trace in left_out[:8])
    warning = TraceWarning(
        "several_profiles",
        f"the traces come from {len(profiles)} profiles taken at different times; only the one with "
        f"{len(profiles[best])} traces is analysed, left out: {names}",
        count=len(left_out),
    )
    keep = {id(trace) for trace in profiles[best]}
    return [trace for trace in traces if id(trace) in keep], [warning]


def _recorded_together(traces: list[Trace]) -> list[list[Trace]]:
    """Group traces whose recordings overlap in time, in order of time."""
    windows = {id(trace): _window(trace) for trace in traces}
    profiles: list[list[Trace]] = []
    reached = None
    for trace in sorted(traces, key=lambda trace: windows[id(trace)]):
        start, end = windows[id(trace)]
        if reached is None or start > reached:
            profiles.append([])
        profiles[-1].append(trace)
        reached = end if reached is None else max(reached, end)
    return profiles


def _one_each(traces: Iterable[Trace]) -> tuple[list[Trace], list[TraceWarning]]:
    by_rank: dict[int, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_rank[trace.rank or 0].append(trace)
    warnings = []
    for rank, own in by_rank.items():
        if len(own) > 1:
            paths = [trace.metadata.source.path for trace in own]
            warnings.append(
                TraceWarning(
                    DUPLICATE_RANK,
                    f"{len(own)} traces claim rank {rank}; {paths[0]} is analysed, left out: {', '.join(paths[1:])}",
                    count=len(own),
                )
            )
    return [own[0] for _, own in sorted(by_rank.items())], warnings


def _devices(trace: Trace) -> list[int | None]:
    devices: list[int | None] = segment(trace).events.filter("is_kernel")["device"].unique().sort().to_list()
    return devices


def _device(trace: Trace) -> tuple[int | None, list[TraceWarning]]:
    """The device that ran the most kernels."""
    devices = _devices(trace)
    if len(devices) < 2:
        return (devices[0] if devices else None), []
    kernels = segment(trace).events.filter("is_kernel")["device"].drop_nulls()
    main = int(kernels.mode().sort()[0])
    warning = TraceWarning(
        "several_devices",
        f"ran kernels on {len(devices)} devices; only device {main}, the busiest, is compared with other ranks",
        source=trace.metadata.source.path,
        count=len(devices),
    )
    return main, [warning]
