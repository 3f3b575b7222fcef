"""The two roofs of a GPU: the dense peaks of its data sheet, and what GEMMs and copies have achieved."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from traceanalyzer.hardware.gpus import Gpu, HardwareError, known_gpus

MEMORY_SHARE = 0.80
"""Default achievable share of peak bandwidth: lm_head of a decode step on MI300X reached 79.9 %, expert weights on L40S
76 % (aiconfigurator), a copy on Radeon 8060S 83 %."""

COMPUTE_SHARE = 0.70
"""Default share of the peak for a vendor without a measurement in the table; chosen, not fitted."""

SHORTEST_KERNEL_NS = 4_400
"""Time of a kernel with almost no work in a trace of an MI300X, launched from a graph."""

STAND_INS = {
    "fp4": ("bf16", "fp16"),
    "fp8": ("bf16", "fp16"),
    "int8": ("bf16", "fp16"),
    "bf16": ("fp16",),
    "fp16": ("bf16",),
    "tf32": ("fp32",),
}
"""Data type -> types that a GPU without it computes in, best first: operands are widened before the GEMM, fp4 past fp8,
as engines then keep 16-bit activations."""


@dataclass(frozen=True)
class Roofs:
    """A GPU's roofs for one data type.

    Attributes:
        dtype: the data type asked for.
        computed_in: the one whose peak counts, where the GPU lacks it.
        peak_tflops: dense peak, 10^12 operations/s.
        achievable_tflops: what the best GEMMs reach.
        bandwidth_gbps: peak memory bandwidth, GB/s.
        achievable_gbps: what the best kernels reach.
        notes: where the achievable figures come from.
    """

    dtype: str
    computed_in: str
    peak_tflops: float
    achievable_tflops: float
    bandwidth_gbps: float
    achievable_gbps: float
    notes: tuple[str, ...]

    @property
    def ridge(self) -> float:
        """FLOP per byte above which a kernel is limited by compute rather than memory."""
        return self.peak_tflops * 1e3 / self.bandwidth_gbps


def roofs(gpu: Gpu, dtype: str) -> Roofs:
    """Return the roofs of a GPU for a data type.

    Raises:
        HardwareError: no peak is known for the type or one that stands in for it.
    """
    computed_in = next((known for known in (dtype, *STAND_INS.get(dtype, ())) if known in gpu.peak_tflops), None)
    if computed_in is None:
        known = ", ".join(gpu.peak_tflops) or "none"
        raise HardwareError(f"no peak of {dtype} is known for {gpu.name} (known peaks: {known})")
    share, compute_note = _compute_share(gpu)
    gbps, memory_note = _achievable_gbps(gpu)
    stands_in = (
        () if computed_in == dtype else (f"{gpu.name} has no {dtype} peak: compared with that of {computed_in}",)
    )
    peak = gpu.peak_tflops[computed_in]
    return Roofs(
        dtype=dtype,
        computed_in=computed_in,
        peak_tflops=peak,
        achievable_tflops=peak * share,
        bandwidth_gbps=gpu.bandwidth_gbps,
        achievable_gbps=gbps,
        notes=(*stands_in, compute_note, memory_note),
    )


def _compute_share(gpu: Gpu) -> tuple[float, str]:
    own = measured_share(gpu)
    if own is not None:
        how = f"{gpu.measured_bf16_tflops:g} TFLOP/s measured in bf16 on {gpu.name}"
        return (
            own,
            f"achievable arithmetic: {own:.0%} of the peak ({how}; other types are assumed to reach the same share)",
        )
    others = [share for row in known_gpus() if row.vendor == gpu.vendor and (share := measured_share(row)) is not None]
    if others:
        share = median(others)
        return share, f"achievable arithmetic: {share:.0%} of the peak, the median of {len(others)} {gpu.vendor} GPUs"
    return COMPUTE_SHARE, f"achievable arithmetic: {COMPUTE_SHARE:.0%} of the peak, assumed"


def measured_share(gpu: Gpu) -> float | None:
    """Return the measured share of a GPU's bf16 peak; ``None`` without a measurement."""
    peak = gpu.peak_tflops.get("bf16")
    return gpu.measured_bf16_tflops / peak if gpu.measured_bf16_tflops is not None and peak else None


def _achievable_gbps(gpu: Gpu) -> tuple[float, str]:
    if gpu.measured_bandwidth_gbps is not None:
        share = gpu.measured_bandwidth_gbps / gpu.bandwidth_gbps
        return gpu.measured_bandwidth_gbps, f"achievable bandwidth: {share:.0%} of the peak, measured on {gpu.name}"
    return gpu.bandwidth_gbps * MEMORY_SHARE, (
        f"achievable bandwidth: {MEMORY_SHARE:.0%} of the peak, as reached on MI300X (79.9 %)"
    )
