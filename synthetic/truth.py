"""What is true of a synthetic trace, by construction. Times in ns; indices count `traceEvents`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synthetic.spec import Category, Phase, Role, Section


@dataclass(frozen=True)
class DeviceEventTruth:
    """One device event. `event` is its index in `traceEvents`, `start_ns` counts from the trace's base time.

    `step` is None for events launched before the profile, `block` for events outside blocks.
    """

    event: int
    name: str
    category: Category
    start_ns: int
    dur_ns: int
    stream: int
    correlation: int
    step: int | None
    section: Section
    block: int | None
    role: Role


@dataclass(frozen=True)
class SectionTruth:
    """Some device events of a step: their indices by start, the kernels among them, and kernel time.

    `busy_ns` is the length of the union of the kernels' intervals.
    """

    events: tuple[int, ...]
    kernels: int
    kernel_sum_ns: int
    busy_ns: int


@dataclass(frozen=True)
class BlockTruth(SectionTruth):
    """A transformer block. Blocks with the same `variant` run the same kernels and are of the same kind.

    `roles` sums kernel time by role, in ns. `run` is `verify` or `draft` where a step holds several forward
    passes, `microbatch` tells dual batches apart.
    """

    index: int
    layer: int
    run: str
    microbatch: int
    variant: int
    kind: str
    first_kernel: str
    start_ns: int
    roles: Mapping[Role, int]


@dataclass(frozen=True)
class StepTruth:
    """One step: `label` is the marker's text, None where the engine writes none.

    `complete` is False for a step whose device events are not all in the file. `kernels`, `kernel_sum_ns`,
    `busy_ns` and `span_ns` (first start to last end) count everything the step launched, `outside` included.
    """

    index: int
    label: str | None
    phase: Phase
    complete: bool
    requests: int
    tokens: int
    kernels: int
    kernel_sum_ns: int
    busy_ns: int
    span_ns: int
    prologue: SectionTruth
    blocks: tuple[BlockTruth, ...]
    epilogue: SectionTruth
    outside: SectionTruth
    period_blocks: int | None


@dataclass(frozen=True)
class Truth:
    """The whole trace. `events` has every device event of the file once; sums count kernels only."""

    steps: tuple[StepTruth, ...]
    events: tuple[DeviceEventTruth, ...]
    kernel_ns: Mapping[str, int]
    kernel_sum_ns: int
    busy_ns: int
    graph_launches: int
    kernels_without_step: int
    kernels_without_step_ns: int

    @property
    def complete_steps(self) -> tuple[StepTruth, ...]:
        """The steps that averages are taken over."""
        return tuple(step for step in self.steps if step.complete and step.phase != "dummy")


def union_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Length of the union of (start, end) intervals."""
    total, reached = 0, None
    for start, end in sorted(intervals):
        if reached is None or start >= reached:
            total, reached = total + end - start, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total


def kernels_of(events: Iterable[DeviceEventTruth]) -> list[DeviceEventTruth]:
    """The events that are kernels: copies and memsets are not."""
    return [event for event in events if event.category == "kernel"]


def busy_ns(events: Iterable[DeviceEventTruth]) -> int:
    """Time during which at least one kernel of `events` runs."""
    return union_ns((event.start_ns, event.start_ns + event.dur_ns) for event in kernels_of(events))


def section_of(events: Iterable[DeviceEventTruth]) -> SectionTruth:
    """Sums of some events."""
    ordered = sorted(events, key=lambda event: (event.start_ns, event.event))
    kernels = kernels_of(ordered)
    return SectionTruth(
        events=tuple(event.event for event in ordered),
        kernels=len(kernels),
        kernel_sum_ns=sum(kernel.dur_ns for kernel in kernels),
        busy_ns=busy_ns(kernels),
    )


def sums_by_name(events: Iterable[DeviceEventTruth]) -> dict[str, int]:
    """Kernel time by kernel name, in ns."""
    sums: dict[str, int] = defaultdict(int)
    for kernel in kernels_of(events):
        sums[kernel.name] += kernel.dur_ns
    return dict(sums)


def sums_by_role(events: Iterable[DeviceEventTruth]) -> dict[Role, int]:
    """Kernel time by role, in ns."""
    sums: dict[Role, int] = defaultdict(int)
    for kernel in kernels_of(events):
        sums[kernel.role] += kernel.dur_ns
    return dict(sums)


def smallest_period(kinds: tuple[str, ...]) -> int | None:
    """The smallest number of blocks after which the kinds repeat, None where they do not within the step."""
    for period in range(1, len(kinds) // 2 + 1):
        if all(kinds[i] == kinds[i - period] for i in range(period, len(kinds))):
            return period
    return None
