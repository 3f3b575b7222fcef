"""The time of every op: T = max(FLOP / (peak e_c), bytes / (bandwidth e_m)) + kernels x latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from traceanalyzer.commands.estimate.efficiencies import Efficiencies, class_of, peak_tflops
from traceanalyzer.commands.estimate.errors import EstimateError
from traceanalyzer.commands.estimate.link import Link, collective_ns
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Op

BOUNDS = ("compute", "memory", "latency", "communication")


@dataclass(frozen=True)
class OpTime:
    """How long one op takes, wherever it occurs in a step.

    Attributes:
        op: the op.
        count: how often it occurs.
        compute_ns: what the arithmetic of one takes.
        memory_ns: what its bytes take.
        latency_ns: what its kernels take beside.
        communication_ns: what a collective takes.
    """

    op: Op
    count: int
    compute_ns: float
    memory_ns: float
    latency_ns: float
    communication_ns: float = 0.0

    @property
    def one_ns(self) -> float:
        """Time of one."""
        return max(self.compute_ns, self.memory_ns) + self.latency_ns + self.communication_ns

    @property
    def total_ns(self) -> float:
        """Time of all."""
        return self.count * self.one_ns

    @property
    def bound(self) -> str:
        """What most of its time goes to: ``compute``, ``memory``, ``latency`` or ``communication``."""
        parts = (self.compute_ns, self.memory_ns, self.latency_ns, self.communication_ns)
        return max(zip(BOUNDS, parts, strict=True), key=lambda part: part[1])[0]


def time_op(op: Op, count: int, gpu: Gpu, efficiencies: Efficiencies, link: Link | None) -> OpTime:
    """Return the time of one op.

    Raises:
        EstimateError: its FLOP or bytes are unknown, or it is a collective and there is no link.
        HardwareError: the GPU's peak of its data type is unknown.
    """
    if op.collective is not None:
        if link is None:
            raise EstimateError(f"how fast GPUs of {gpu.name} talk to each other is unknown: give --link-gbps")
        return OpTime(op, count, 0.0, 0.0, efficiencies.kernel_ns, collective_ns(op, link))
    if op.flops is None or op.bytes is None:
        raise EstimateError(f"the work of {op.name} is unknown: {op.notes[0] if op.notes else 'not modelled'}")
    share = efficiencies.shares[class_of(op)]
    peak = peak_tflops(gpu, op.dtype)
    return OpTime(
        op=op,
        count=count,
        compute_ns=0.0 if peak is None else op.flops / (peak * share.compute) / 1e3,
        memory_ns=op.bytes / (gpu.bandwidth_gbps * share.memory),
        latency_ns=efficiencies.kernel_ns * (1 if op.kernels is None else op.kernels),
    )


def time_ops(
    counted: Iterable[tuple[Op, int]], gpu: Gpu, efficiencies: Efficiencies, link: Link | None = None
) -> tuple[OpTime, ...]:
    """Return the time of every op of a step; errors are those of ``time_op``."""
    return tuple(time_op(op, count, gpu, efficiencies, link) for op, count in counted)


@dataclass(frozen=True)
class OpSum:
    """All ops of one name in layers of one kind: what a step spends on them. Times in ns.

    Attributes:
        name: the op.
        role: its role.
        kind: what sets its layers apart; null where nothing does.
        count: how often it occurs.
        total_ns: time of all.
        compute_ns: what their arithmetic takes.
        memory_ns: what their bytes take.
        latency_ns: what their kernels take beside.
        communication_ns: what collectives take.
        flops: of all together.
        bytes: of all together.
        bound: what most of their time goes to.
        notes: what their numbers rest on.
    """

    name: str
    role: str
    kind: str | None
    count: int
    total_ns: float
    compute_ns: float
    memory_ns: float
    latency_ns: float
    communication_ns: float
    flops: float
    bytes: float
    bound: str
    notes: tuple[str, ...]


def by_op(times: Iterable[OpTime]) -> tuple[OpSum, ...]:
    """Sum ops of the same name and kind of layer, in the order of the model; the first layer's are not told apart."""
    alike: dict[tuple[str, str | None], list[OpTime]] = {}
    for entry in times:
        alike.setdefault((entry.op.name, entry.op.kind), []).append(entry)
    return tuple(_sum(entries) for entries in alike.values())


def _sum(entries: list[OpTime]) -> OpSum:
    first = max(entries, key=lambda entry: entry.total_ns)
    return OpSum(
        name=first.op.name,
        role=first.op.role,
        kind=first.op.kind,
        count=sum(entry.count for entry in entries),
        total_ns=total_ns(entries),
        compute_ns=sum(entry.count * entry.compute_ns for entry in entries),
        memory_ns=sum(entry.count * entry.memory_ns for entry in entries),
        latency_ns=sum(entry.count * entry.latency_ns for entry in entries),
        communication_ns=sum(entry.count * entry.communication_ns for entry in entries),
        flops=sum(entry.count * (entry.op.flops or 0.0) for entry in entries),
        bytes=sum(entry.count * (entry.op.bytes or 0.0) for entry in entries),
        bound=first.bound,
        notes=first.op.notes,
    )


def total_ns(times: Iterable[OpTime]) -> float:
    """Return the time of all ops, one after the other."""
    return sum(entry.total_ns for entry in times)


def share_of(times: Iterable[OpTime], chosen: Callable[[OpTime], bool]) -> float:
    """Return the share of the time that goes to the ops chosen; 0 where there is none."""
    found = list(times)
    whole = total_ns(found)
    return total_ns(entry for entry in found if chosen(entry)) / whole if whole else 0.0


def compute_bound_share(times: Iterable[OpTime]) -> float:
    """Return the share of the time in ops that arithmetic bounds."""
    return share_of(times, lambda entry: entry.bound == "compute")
