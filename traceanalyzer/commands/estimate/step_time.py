"""Time of one step: of each op, max(FLOP / (peak e_c), bytes / (bandwidth e_m)) + kernels x latency, and of them all.

The time of a step over all data-parallel ranks and pipeline stages of a deployment is called a round: in it, every
sequence that generates gets one token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from traceanalyzer.commands.estimate.deployment import Chunk, Deployment, workload
from traceanalyzer.commands.estimate.efficiencies import EstimateError, class_of, collective_ns, peak_tflops
from traceanalyzer.commands.estimate.result import EstimateOp
from traceanalyzer.model import Op, Step, counted_ops, expected_distinct

OpBound = Literal["compute", "memory", "latency", "communication"]
BOUNDS: tuple[OpBound, ...] = ("compute", "memory", "latency", "communication")

EXPECTED_MAXIMUM = {1: 0.0, 2: 0.564, 4: 1.029, 8: 1.424, 16: 1.766, 32: 2.070, 64: 2.344}
"""Ranks -> expected maximum of as many standard normal values (tables of order statistics)."""

GRID = 1.25
"""Contexts are computed at powers of this and interpolated in between, where op times are nearly linear. Chosen, not
fitted: a test holds the error below 1 %."""

FEWEST_EXACT = 64
COARSE = 8
"""Beyond ``FEWEST_EXACT``, sequences and prompt tokens are rounded up to a multiple of this; chosen, not fitted."""


@dataclass(frozen=True)
class OpTime:
    """How long an op takes; times are those of one occurrence.

    Attributes:
        op: the op.
        count: how often it occurs in a step.
        compute_ns: time of its arithmetic.
        memory_ns: time of its memory accesses.
        latency_ns: fixed time of its kernels.
        communication_ns: time of the collective.
    """

    op: Op
    count: int
    compute_ns: float
    memory_ns: float
    latency_ns: float
    communication_ns: float = 0.0

    @property
    def one_ns(self) -> float:
        """Time of one occurrence."""
        return max(self.compute_ns, self.memory_ns) + self.latency_ns + self.communication_ns

    @property
    def total_ns(self) -> float:
        """Time of all occurrences."""
        return self.count * self.one_ns

    @property
    def bound(self) -> OpBound:
        """What takes most of its time."""
        parts = (self.compute_ns, self.memory_ns, self.latency_ns, self.communication_ns)
        return max(zip(BOUNDS, parts, strict=True), key=lambda part: part[1])[0]


def op_times(
    deployment: Deployment, decodes: int, context: float, chunks: Sequence[Chunk] = (), *, stage: int | None = None
) -> tuple[OpTime, ...]:
    """Return the time of every op of a step on one GPU; under expert parallelism, on the busiest one.

    Args:
        deployment: the model on its GPUs.
        decodes: sequences of one data-parallel rank that generate.
        context: mean tokens of their contexts.
        chunks: parts of prompts in the same step.
        stage: one pipeline stage; by default all, one after the other.

    Raises:
        EstimateError: the work of an op is unknown, or there is a collective and no known link.
        HardwareError: the GPU has no known peak for a data type.
    """
    work = workload(decodes, context, chunks, graphs=deployment.graphs)
    own = deployment
    step = Step(own.architecture, work, own.parallel, own.routing, own.execution, stage)
    return tuple(time_op(_on_busiest_rank(own, op), count, own) for op, count in counted_ops(step))


def time_op(op: Op, count: int, deployment: Deployment) -> OpTime:
    """Return the time of one op; errors are those of ``op_times``."""
    gpu, efficiencies = deployment.gpu, deployment.efficiencies
    if op.collective is not None:
        link = deployment.known_link()
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


def imbalance(deployment: Deployment, tokens: int) -> float:
    """Return the load of the busiest expert-parallel rank over the mean: as given, else what chance alone causes.

    Each expert is hit independently of the others. Of n ranks with E/n experts each, the busiest is above the mean by
    the expected maximum of n normal values. Popular experts that share a rank make it worse.
    """
    moe, ep = deployment.architecture.moe, deployment.parallel.ep
    if moe is None or ep == 1:
        return 1.0
    if deployment.expert_imbalance is not None:
        return deployment.expert_imbalance
    share = expected_distinct(moe.experts, moe.top_k, tokens) / moe.experts
    deviation = math.sqrt(share * (1 - share) / (moe.experts / ep))
    nearest = min(EXPECTED_MAXIMUM, key=lambda ranks: abs(ranks - ep))
    return min(1 + EXPECTED_MAXIMUM[nearest] * deviation / share, float(ep))


def _on_busiest_rank(deployment: Deployment, op: Op) -> Op:
    if deployment.parallel.ep == 1 or op.experts is None or op.flops is None:
        return op
    tokens = round((op.m or 1) * deployment.parallel.ep / (op.top_k or 1))
    factor = imbalance(deployment, tokens)
    return replace(
        op,
        flops=op.flops * factor,
        weight_bytes=op.weight_bytes * factor,
        activation_bytes=op.activation_bytes * factor,
        notes=(*op.notes, f"busiest rank: {factor:.2f} times the mean"),
    )


def total_ns(times: Iterable[OpTime]) -> float:
    """Return the time of all ops, one after the other."""
    return sum(entry.total_ns for entry in times)


def op_sums(phase: Literal["decode", "prefill"], times: Sequence[OpTime]) -> list[EstimateOp]:
    """Return one row for the ops of each name and kind of layer, in the order of the model."""
    whole = total_ns(times)
    # The first layer's ops count with those of the other layers of its kind.
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
        **{f"{bound}_us": sum(one.count * getattr(one, f"{bound}_ns") for one in entries) / 1000 for bound in BOUNDS},
        flops=flops,
        bytes=size,
        intensity=flops / size if size else None,
        bound=first.bound,
        notes=list(first.op.notes),
    )


@dataclass(frozen=True)
class StepTime:
    """One round; ``busy_ns`` is the time that the busiest pipeline stage computes: all of it where there is one."""

    total_ns: float
    busy_ns: float

    @property
    def bubble_share(self) -> float:
        """Share of the round in which the busiest pipeline stage waits."""
        return 1 - self.busy_ns / self.total_ns if self.total_ns else 0.0


@dataclass
class StepTimes:
    """Times of a deployment's rounds, cached: simulations ask for the same ones many times.

    Sequences are counted over all data-parallel ranks, which run in lock-step; chunks are those of the busiest rank.
    """

    deployment: Deployment
    _known: dict[tuple[int, float, tuple[Chunk, ...]], StepTime] = field(default_factory=dict)

    def round(self, decodes: int, context: float, chunks: Sequence[Chunk] = ()) -> StepTime:
        """Return the time of a round: ``decodes`` sequences that generate at this mean context, and prompt chunks."""
        coarse = tuple(Chunk(_coarse(one.tokens), _coarse(one.past), one.last) for one in chunks)
        if not decodes:
            return self._at(0, 0.0, coarse)
        low = GRID ** math.floor(math.log(max(context, 1.0), GRID) + 1e-9)
        high = low * GRID
        part = (max(context, 1.0) - low) / (high - low)
        first = self._at(_coarse(decodes), low, coarse)
        if part <= 1e-9:
            return first
        second = self._at(_coarse(decodes), high, coarse)
        return StepTime(
            first.total_ns + part * (second.total_ns - first.total_ns),
            first.busy_ns + part * (second.busy_ns - first.busy_ns),
        )

    def _at(self, decodes: int, context: float, chunks: tuple[Chunk, ...]) -> StepTime:
        key = (decodes, context, chunks)
        if key not in self._known:
            self._known[key] = round_time(self.deployment, decodes, context, chunks)
        return self._known[key]


def _coarse(count: int) -> int:
    return count if count <= FEWEST_EXACT else math.ceil(count / COARSE) * COARSE


def round_time(deployment: Deployment, decodes: int, context: float, chunks: Sequence[Chunk] = ()) -> StepTime:
    """Return the time in which every sequence gets one token and the chunks are computed.

    Data-parallel ranks run in lock-step, so the busiest sets the pace. There are as many groups of sequences
    (micro-batches) as pipeline stages; the next round of a group starts when its last one has left the last stage:
    max(sum over groups of the slowest stage's time, time of the slowest group through all stages).
    """
    on_rank = math.ceil(decodes / deployment.parallel.dp)
    host = deployment.efficiencies.step_ns
    stages = deployment.parallel.pp
    if stages == 1:
        time = total_ns(op_times(deployment, on_rank, context, chunks)) + host
        return StepTime(time, time)
    size, left = divmod(on_rank, stages)
    sizes = [size + (1 if group < left else 0) for group in range(stages)]
    # Chunks join the smallest group, or form a group of their own while stages are idle.
    groups: list[tuple[int, tuple[Chunk, ...]]] = [(size, ()) for size in sizes if size]
    if chunks and len(groups) < stages:
        groups.append((0, tuple(chunks)))
    elif chunks:
        groups[-1] = (groups[-1][0], tuple(chunks))
    known = {
        group: [total_ns(op_times(deployment, group[0], context, group[1], stage=stage)) for stage in range(stages)]
        for group in set(groups)
    }
    through = max(sum(known[group]) for group in groups)
    busiest = max(sum(known[group][stage] for group in groups) for stage in range(stages))
    one_by_one = sum(max(known[group]) for group in groups)
    return StepTime(max(through, one_by_one) + host, busiest)
