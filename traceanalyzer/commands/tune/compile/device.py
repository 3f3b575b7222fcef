"""The figures of a GPU that decide how many programs it runs at once, and how fast it could be."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.hardware.gpus import Gpu, known_gpus
from traceanalyzer.hardware.lookup import find_gpu
from traceanalyzer.kernels.target import Target, find_target

KIB = 1024


@dataclass(frozen=True)
class UnitLimits:
    """What one SM or CU holds.

    Attributes:
        registers: 32-bit registers.
        shared_bytes: shared memory (LDS).
        warps: warps (wavefronts).
        programs: thread blocks (work groups).
        register_step: a thread gets registers in multiples of this.
    """

    registers: int
    shared_bytes: int
    warps: int
    programs: int
    register_step: int


# NVIDIA: CUDA C++ Programming Guide, table of technical specifications per compute capability. AMD: LLVM's AMDGPU
# usage guide and subtarget features: CDNA has 4 SIMDs of 512 registers x 64 lanes, RDNA 3 and 4 has 2 SIMDs of
# 1,536 registers x 32 lanes (1.5x register files: gfx1100, gfx1101, gfx1151, gfx12), 16 wavefronts each.
_CDNA = UnitLimits(4 * 512 * 64, 64 * KIB, 32, 32, 8)
_RDNA = UnitLimits(2 * 1536 * 32, 64 * KIB, 32, 32, 24)
UNIT_LIMITS = {
    "sm_75": UnitLimits(65536, 64 * KIB, 32, 16, 8),
    "sm_80": UnitLimits(65536, 164 * KIB, 64, 32, 8),
    "sm_86": UnitLimits(65536, 100 * KIB, 48, 16, 8),
    "sm_87": UnitLimits(65536, 164 * KIB, 48, 16, 8),
    "sm_89": UnitLimits(65536, 100 * KIB, 48, 24, 8),
    "sm_90": UnitLimits(65536, 228 * KIB, 64, 32, 8),
    "sm_100": UnitLimits(65536, 228 * KIB, 64, 32, 8),
    "sm_103": UnitLimits(65536, 228 * KIB, 64, 32, 8),
    "sm_120": UnitLimits(65536, 100 * KIB, 48, 24, 8),
    "sm_121": UnitLimits(65536, 100 * KIB, 48, 24, 8),
    "gfx90a": _CDNA,
    "gfx942": _CDNA,
    "gfx950": UnitLimits(4 * 512 * 64, 160 * KIB, 32, 32, 8),
    "gfx1100": _RDNA,
    "gfx1101": _RDNA,
    "gfx1151": _RDNA,
    "gfx1200": _RDNA,
    "gfx1201": _RDNA,
}

DUAL_ISSUE = {"gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"}
"""Architectures whose fp32 peak assumes two operations per lane and cycle, which other instructions do not reach."""


@dataclass(frozen=True)
class Device:
    """A GPU as the screen sees it.

    Attributes:
        name: of the GPU the figures belong to.
        target: its architecture.
        units: SMs or CUs.
        limits: of one unit.
        bandwidth: bytes/s.
        vector_rate: vector instructions/s, all units together.
        matrix_flops: dense peak by data type, operations/s.
    """

    name: str
    target: Target
    units: int
    limits: UnitLimits
    bandwidth: float
    vector_rate: float
    matrix_flops: dict[str, float]

    def resident_programs(self, registers: int | None, shared_bytes: int, num_warps: int) -> int:
        """Return how many programs the whole GPU holds at once; at least one per unit."""
        limits = self.limits
        threads = num_warps * self.target.warp_size
        step = limits.register_step
        given = -(-max(registers or 1, 1) // step) * step
        by_registers = limits.registers // (given * threads)
        by_shared = limits.shared_bytes // max(shared_bytes, 1)
        return self.units * max(1, min(by_registers, by_shared, limits.warps // num_warps, limits.programs))


def device_of(target: Target | None = None, gpu: Gpu | str | None = None) -> Device:
    """Return the figures of a GPU: the one given or named, or the table's first of an architecture.

    Raises:
        ValueError: neither is given, the GPU is unknown or of another architecture, or its figures are not known.
    """
    if gpu is not None:
        given = find_gpu(gpu) if isinstance(gpu, str) else gpu
        own = find_target(given.target) if given.target else target
        if own is None:
            raise ValueError(f"the architecture of {given.name} is not known: set target in its file, or pass --target")
        if target is not None and own != target:
            raise ValueError(f"{given.name} is {own.name}, not {target.name}")
        return _device(given, own)
    if target is None:
        raise ValueError("an architecture or a GPU is needed")
    fitting = [known for known in known_gpus() if known.target == target.name]
    if not fitting:
        raise ValueError(f"no GPU of {target.name} is in the table; name one with --gpu, or describe it in --gpu-file")
    return _device(fitting[0], target)


def device_of_name(target: Target, name: str) -> Device:
    """Return the figures of the GPU that a driver names; where the table lacks it, those of another of its kind.

    Raises:
        ValueError: no GPU of the architecture is known.
    """
    try:
        return device_of(target, name)
    except ValueError:
        return device_of(target)


def _device(gpu: Gpu, target: Target) -> Device:
    if gpu.compute_units is None or not {"fp32", "fp16"} <= set(gpu.peak_tflops):
        raise ValueError(f"the GPU table lacks compute units or peaks of {gpu.name}")
    peaks = {name: 1e12 * value for name, value in gpu.peak_tflops.items()}
    per_instruction = 2 * (2 if target.name in DUAL_ISSUE else 1)  # a fused multiply-add counts twice
    return Device(
        name=gpu.name,
        target=target,
        units=gpu.compute_units,
        limits=UNIT_LIMITS[target.name],
        bandwidth=gpu.bandwidth_gbps * 1e9,
        vector_rate=peaks["fp32"] / per_instruction / target.warp_size,
        matrix_flops=peaks,
    )
