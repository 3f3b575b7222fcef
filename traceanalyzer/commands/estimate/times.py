"""The time of every op: T = max(FLOP / (peak e_c), bytes / (bandwidth e_m)) + kernels x latency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from traceanalyzer.commands.estimate.efficiencies import Efficiencies, class_of, peak_tflops
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.link import Link, collective_ns
from traceanalyzer.commands.estimate.result import EstimateOp
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Op

OpBound = Literal["compute", "memory", "latency", "communication"]
BOUNDS: tuple[OpBound, ...] = ("compute", "memory", "latency", "communication")


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
    def bound(self) -> OpBound:
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


def op_sums(phase: Literal["decode", "prefill"], times: Sequence[OpTime]) -> list[EstimateOp]:
    """Return what a step spends on the ops of each name and kind of layer, in the order of the model."""
    whole = total_ns(times)
    # The first layer's ops are not told apart from those of the others of its kind.
    alike: dict[tuple[str, str | None], list[OpTime]] = {}
    for entry in times:
        alike.setdefault((entry.op.name, entry.op.kind), []).append(entry)
    return [_sum(phase, entries, whole) for entries in alike.values()]


def _sum(phase: Literal["decode", "prefill"], entries: list[OpTime], whole_ns: float) -> EstimateOp:
    first = max(entries, key=lambda entry: entry.total_ns)
    flops = sum(entry.count * (entry.op.flops or 0.0) for entry in entries)
    size = sum(entry.count * (entry.op.bytes or 0.0) for entry in entries)
    return EstimateOp(
        phase=phase,
        op=first.op.name,
        role=first.op.role,
        kind=first.op.kind,
        count=sum(entry.count for entry in entries),
        time_us=total_ns(entries) / 1000,
        share=total_ns(entries) / whole_ns if whole_ns else 0.0,
        compute_us=sum(entry.count * entry.compute_ns for entry in entries) / 1000,
        memory_us=sum(entry.count * entry.memory_ns for entry in entries) / 1000,
        latency_us=sum(entry.count * entry.latency_ns for entry in entries) / 1000,
        communication_us=sum(entry.count * entry.communication_ns for entry in entries) / 1000,
        flops=flops,
        bytes=size,
        intensity=flops / size if size else None,
        bound=first.bound,
        notes=list(first.op.notes),
    )


def total_ns(times: Iterable[OpTime]) -> float:
    """Return the time of all ops, one after the other."""
    return sum(entry.total_ns for entry in times)


def compute_bound_share(times: Iterable[OpTime]) -> float:
    """Return the share of the time in ops that arithmetic limits; 0 where there is none."""
    entries = list(times)
    whole = total_ns(entries)
    return total_ns(entry for entry in entries if entry.bound == "compute") / whole if whole else 0.0
