"""The time of one step of a deployment, whatever its layout: every op, and the step as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from traceanalyzer.commands.estimate.deployment import Chunk, Deployment, workload
from traceanalyzer.commands.estimate.times import OpTime, time_ops, total_ns
from traceanalyzer.model import Op, counted_ops, expected_distinct
from traceanalyzer.model.architecture import Moe

EXPECTED_MAXIMUM = {1: 0.0, 2: 0.564, 4: 1.029, 8: 1.424, 16: 1.766, 32: 2.070, 64: 2.344}
"""Ranks -> expectation of the largest of as many standard normal values."""


def op_times(
    deployment: Deployment, decodes: int, context: float, chunks: Sequence[Chunk] = (), *, stage: int | None = None
) -> tuple[OpTime, ...]:
    """Return the time of every op of a step on one GPU; under expert parallelism, on the busiest one.

    Args:
        deployment: the model on its GPUs.
        decodes: sequences of one data-parallel rank that generate.
        context: tokens of each one's context.
        chunks: parts of prompts in the same step.
        stage: one pipeline stage; all of them, one after the other, by default.
    """
    work = workload(decodes, context, chunks, graphs=deployment.graphs)
    counted = counted_ops(
        deployment.architecture, work, deployment.parallel, deployment.routing, deployment.execution, stage=stage
    )
    busiest = [(_on_busiest_rank(deployment, op), count) for op, count in counted]
    return time_ops(busiest, deployment.gpu, deployment.efficiencies, deployment.link)


def imbalance(deployment: Deployment, tokens: int) -> float:
    """Return the load of the busiest expert-parallel rank over the mean: as given, or what chance alone makes of it.

    Each expert is hit independently; of n ranks with E/n experts each, the busiest has the expected maximum of n
    normal values more. Popular experts that share a rank make it worse.
    """
    moe, ep = deployment.architecture.moe, deployment.parallel.ep
    if moe is None or ep == 1:
        return 1.0
    if deployment.expert_imbalance is not None:
        return deployment.expert_imbalance
    return _by_chance(moe, ep, tokens)


def _by_chance(moe: Moe, ep: int, tokens: int) -> float:
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
        notes=(*op.notes, f"busiest rank {factor:.2f} times the mean"),
    )


@dataclass(frozen=True)
class StepTime:
    """One round of a deployment: every sequence that generates gets one token.

    Attributes:
        total_ns: its time.
        busy_ns: what the busiest pipeline stage computes in it; the total where there is one stage.
    """

    total_ns: float
    busy_ns: float

    @property
    def bubble_share(self) -> float:
        """Share of the round in which the busiest pipeline stage waits."""
        return 1 - self.busy_ns / self.total_ns if self.total_ns else 0.0


GRID = 1.25
"""Contexts are computed at powers of this and interpolated between: op times are linear there but for kinks."""

FEWEST_EXACT = 64
COARSE = 8
"""From this many sequences or prompt tokens on, they are rounded up to a multiple of ``COARSE``."""


@dataclass
class StepTimes:
    """Times of a deployment's rounds, remembered: simulations ask for the same ones over and over.

    Sequences are counted over all data-parallel ranks, which run in lock-step; chunks are those of the busiest rank.
    """

    deployment: Deployment
    _known: dict[tuple[int, float, tuple[Chunk, ...]], StepTime] = field(default_factory=dict)

    def round(self, decodes: int, context: float, chunks: Sequence[Chunk] = ()) -> StepTime:
        """Return the time of a round: ``decodes`` sequences that generate at this mean context, and prompt chunks."""
        if not decodes:
            return self._at(0, 0.0, tuple(map(_coarse_chunk, chunks)))
        low = GRID ** math.floor(math.log(max(context, 1.0), GRID) + 1e-9)
        high = low * GRID
        part = (max(context, 1.0) - low) / (high - low)
        grid = (_coarse(decodes), tuple(map(_coarse_chunk, chunks)))
        first = self._at(grid[0], low, grid[1])
        if part <= 1e-9:
            return first
        second = self._at(grid[0], high, grid[1])
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


def _coarse_chunk(chunk: Chunk) -> Chunk:
    return Chunk(_coarse(chunk.tokens), _coarse(chunk.past), chunk.last)


def round_time(deployment: Deployment, decodes: int, context: float, chunks: Sequence[Chunk] = ()) -> StepTime:
    """Return the time in which every sequence gets one token and the chunks are computed.

    Data-parallel ranks run in lock-step, so the busiest sets the pace. Pipeline stages work on as many groups of
    sequences (micro-batches); a group's next round starts when its last one has passed all stages:
    max(sum over groups of the slowest stage's time, time of the slowest group through all stages).
    """
    on_rank = math.ceil(decodes / deployment.parallel.dp)
    host = deployment.efficiencies.step_ns
    stages = deployment.parallel.pp
    if stages == 1:
        time = total_ns(op_times(deployment, on_rank, context, chunks)) + host
        return StepTime(time, time)
    sizes = [size for size in _split(on_rank, stages) if size]
    # Chunks join the smallest group, or are a group of their own while stages are idle.
    groups: list[tuple[int, tuple[Chunk, ...]]] = [(size, ()) for size in sizes]
    if chunks:
        if len(groups) < stages:
            groups.append((0, tuple(chunks)))
        else:
            groups[-1] = (groups[-1][0], tuple(chunks))
    known = {group: _stage_times(deployment, group[0], context, group[1]) for group in set(groups)}
    through = max(sum(known[group]) for group in groups)
    busiest = max(sum(known[group][stage] for group in groups) for stage in range(stages))
    one_by_one = sum(max(known[group]) for group in groups)
    return StepTime(max(through, one_by_one) + host, busiest)


def _split(count: int, parts: int) -> list[int]:
    size, left = divmod(count, parts)
    return [size + (1 if part < left else 0) for part in range(parts)]


def _stage_times(deployment: Deployment, decodes: int, context: float, chunks: tuple[Chunk, ...]) -> tuple[float, ...]:
    """Return the time of each pipeline stage for one group of sequences, the send to the next stage included."""
    return tuple(
        total_ns(op_times(deployment, decodes, context, chunks, stage=stage)) for stage in range(deployment.parallel.pp)
    )
