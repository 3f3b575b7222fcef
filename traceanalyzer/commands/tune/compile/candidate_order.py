"""Order compiled candidates by what is known without running them.

The cost of a candidate adds four demands, each over what the GPU could deliver: device memory (with the bytes that the
resident programs keep in flight), vector instructions (spills and repeated work included), matrix operations (padding
included), and the chain of steps that one program must wait through, once per wave. A factor for register pressure
follows. The unit cancels: costs order the candidates of one problem on one GPU and predict no time.

The terms and the first four constants were chosen with two tables in view: docs/tuning.md says which, how well they
fit, and what each term contributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.commands.tune.compile.device import Device
from traceanalyzer.hardware.assembly import Assembly, Instructions
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.traffic import MemoryTraffic

SPILL_SLOTS = 45
"""Vector instructions that one access to a spilled register costs."""

LATENCY_S = 1e-6
"""From asking device memory to having the data, under load."""

L2_OVER_MEMORY = 2.0
"""Bandwidth of the L2 cache over that of device memory."""

PRESSURE = 2.0
"""Weight of register pressure: near the limit, a small change of compiler or shape turns registers into spills."""

MOST_REGISTERS = 256
"""Per thread: 255 on NVIDIA (CUDA programming guide), 256 VGPRs before AGPRs on AMD (LLVM AMDGPU guide)."""


@dataclass(frozen=True)
class Score:
    """Why a candidate stands where it stands.

    Attributes:
        cost: relative; smaller is better.
        work: vector instruction slots of the whole launch, spills included.
        bytes_in_flight: bytes that the resident programs wait for at once.
        waves: rounds the GPU needs to run all programs.
    """

    cost: float
    work: float
    bytes_in_flight: float
    waves: float


def score(problem: Problem, config: Config, facts: CompileFacts, traffic: MemoryTraffic, device: Device) -> Score:
    """Return the cost of one candidate that fits."""
    registers = facts.assembly.registers or 0
    resident = device.resident_programs(registers, facts.shared_bytes, config.num_warps)
    waves = traffic.programs / resident
    stages = max(1, config.num_stages - 1)  # steps whose loads are under way while one computes
    in_flight = min(traffic.programs, resident) * traffic.step_bytes * stages
    busy = min(1.0, traffic.programs / device.units)
    work = _vector_work(config, facts, traffic)

    flops = 2.0 * problem.m * problem.n * problem.k / traffic.padded_share
    peak = device.matrix_flops.get(problem.dtype, device.matrix_flops["fp16"])
    demands = (
        _memory_seconds(traffic, in_flight, device),
        work / (device.vector_rate * busy),
        flops / (peak * busy),
        ceil(waves) * traffic.iterations * LATENCY_S / stages,
    )
    pressure = 1 + PRESSURE * min(1.0, registers / MOST_REGISTERS) ** 2
    return Score(sum(demands) * pressure, work, in_flight, waves)


def _vector_work(config: Config, facts: CompileFacts, traffic: MemoryTraffic) -> float:
    loop, whole = facts.assembly.loop, facts.assembly.whole
    step = loop.vector + SPILL_SLOTS * loop.scratch
    once = max(0, whole.vector - loop.vector) + SPILL_SLOTS * max(0, whole.scratch - loop.scratch)
    return traffic.programs * config.num_warps * (step * traffic.iterations + once)


def _memory_seconds(traffic: MemoryTraffic, in_flight: float, device: Device) -> float:
    """The slower of device memory, as far as Little's law lets it be used, and the L2 cache."""
    loaded = traffic.programs * traffic.iterations * traffic.step_bytes
    from_memory = in_flight * min(1.0, traffic.unique_bytes / loaded)
    reached = min(1.0, from_memory / (device.bandwidth * LATENCY_S))
    return max(traffic.unique_bytes / (device.bandwidth * reached), loaded / (L2_OVER_MEMORY * device.bandwidth))


def preselect(
    problem: Problem,
    configs: Sequence[Config],
    traffic: Callable[[Problem, Config], MemoryTraffic],
    device: Device,
    keep: int,
    named: Sequence[str] = (),
) -> tuple[Config, ...]:
    """Return the candidates whose tile alone looks best, in their order: all that can be said uncompiled.

    Registers are taken as the accumulator's and 64 more per thread; vector work and spills are unknown. Of the
    parameters ``named`` by the user, each combination of values keeps as many candidates as any other, so that none is
    lost to a guess.
    """
    if len(configs) <= keep:
        return tuple(configs)
    guesses = {config: _guess(config, device) for config in configs}
    scores = {c: score(problem, c, guesses[c], traffic(problem, c), device) for c in configs}
    place: Counter[tuple[int | None, ...]] = Counter()
    turn: dict[Config, int] = {}
    for config in ordered(scores):
        values = tuple(getattr(config, name) for name in named)
        turn[config] = place[values]
        place[values] += 1
    chosen = set(sorted(turn, key=turn.__getitem__)[:keep])
    return tuple(config for config in configs if config in chosen)


def _guess(config: Config, device: Device) -> CompileFacts:
    threads = config.num_warps * device.target.warp_size
    registers = config.block_m * config.block_n // threads + 64
    blank = Instructions()
    return CompileFacts("", 0, Assembly(registers, None, None, None, blank, blank))


def ordered(scores: Mapping[Config, Score]) -> tuple[Config, ...]:
    """Return the candidates, the most promising first."""
    return tuple(sorted(scores, key=lambda config: (scores[config].cost, config.label)))
