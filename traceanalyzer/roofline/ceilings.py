"""The roofs that rows are compared with: peak, and achievable as this trace proves it or as the GPU's default says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from traceanalyzer.hardware import DTYPES, Gpu, HardwareError, Roofs, roofs

PROOF_SHARE = 0.9
"""A kernel that reaches this share of the default achievable roof replaces it by what it reached. Chosen."""

CACHE_MULTIPLE = 2.0
LEAST_PROOF_BYTES = 64e6
"""A kernel proves a bandwidth if it moves this multiple of the largest cache, and at least these bytes. Chosen."""


@dataclass(frozen=True)
class Ceilings:
    """Roofs of one GPU.

    Attributes:
        gpu: the GPU.
        gbps: achievable memory bandwidth, GB/s.
        gbps_basis: where that comes from.
        proven_tflops: data type -> (achievable 10^12 operations per second, where that comes from), as this trace
            proves it.
    """

    gpu: Gpu
    gbps: float
    gbps_basis: str
    proven_tflops: tuple[tuple[str, float, str], ...] = ()
    _known: dict[str, Roofs | None] = field(default_factory=dict, compare=False, repr=False)

    def peak_tflops(self, dtype: str) -> float | None:
        """Return the dense peak of a data type, or of the one that stands in for it; None where unknown."""
        known = self._roofs(dtype)
        return known.peak_tflops if known else None

    def achievable_tflops(self, dtype: str) -> float | None:
        """Return what matrix products reach in this data type; None where unknown."""
        for proven, tflops, _ in self.proven_tflops:
            if proven == dtype:
                return tflops
        known = self._roofs(dtype)
        return known.achievable_tflops if known else None

    def tflops_basis(self, dtype: str) -> str | None:
        """Say where the achievable arithmetic of a data type comes from."""
        for proven, _, basis in self.proven_tflops:
            if proven == dtype:
                return basis
        known = self._roofs(dtype)
        return next((note for note in known.notes if "arithmetic" in note), None) if known else None

    def stand_in(self, dtype: str) -> str | None:
        """Say whose peak counts for a data type that the GPU lacks; None where it has its own, or none is known."""
        known = self._roofs(dtype)
        return known.notes[0] if known and known.computed_in != dtype else None

    def _roofs(self, dtype: str) -> Roofs | None:
        if dtype not in self._known:
            try:
                self._known[dtype] = roofs(self.gpu, dtype)
            except HardwareError:
                self._known[dtype] = None
        return self._known[dtype]

    @property
    def compute_share(self) -> dict[str, float]:
        """Data type -> achievable over peak arithmetic, also of types that the GPU computes in another one."""
        shares = {}
        for dtype in DTYPES:
            peak, reached = self.peak_tflops(dtype), self.achievable_tflops(dtype)
            if peak and reached:
                shares[dtype] = min(reached / peak, 1.0)
        return shares

    @property
    def memory_share(self) -> float:
        """Achievable over peak bandwidth."""
        return min(self.gbps / self.gpu.bandwidth_gbps, 1.0)


def default_ceilings(gpu: Gpu) -> Ceilings:
    """Return a GPU's roofs before anything is known of the trace."""
    try:
        own = roofs(gpu, next(iter(gpu.peak_tflops), "bf16"))
    except HardwareError:
        return Ceilings(gpu, gpu.bandwidth_gbps, "achievable bandwidth: taken as the peak, as nothing else is known")
    basis = next((note for note in own.notes if "bandwidth" in note), "achievable bandwidth: a default")
    return Ceilings(gpu, own.achievable_gbps, basis)


@dataclass(frozen=True)
class Reached:
    """What plausible kernels of one row and name reach.

    Attributes:
        label: of the row.
        bound: ``memory`` or ``compute``.
        dtype: data type whose peak limits the arithmetic; None where unknown.
        kernel_bytes: bytes of one kernel.
        rate: in GB/s where memory is the limit, else in 10^12 operations per second.
    """

    label: str
    bound: str
    dtype: str | None
    kernel_bytes: float
    rate: float


def proven(ceilings: Ceilings, reached: Sequence[Reached]) -> Ceilings:
    """Lift or lower the achievable roofs to what kernels of the trace reached, where they come near the defaults."""
    result = ceilings
    big = [
        (one.rate, one.label)
        for one in reached
        if one.bound == "memory"
        and one.kernel_bytes >= _proof_bytes(ceilings.gpu)
        and one.rate <= ceilings.gpu.bandwidth_gbps
    ]
    if big:
        rate, label = max(big)
        if rate >= PROOF_SHARE * ceilings.gbps:
            share = rate / ceilings.gpu.bandwidth_gbps
            result = replace(
                result, gbps=rate, gbps_basis=f"achievable bandwidth: {share:.0%} of the peak, reached by {label} here"
            )
    fastest: dict[str, tuple[float, str]] = {}
    for one in reached:
        default = ceilings.achievable_tflops(one.dtype) if one.dtype else None
        if one.bound == "compute" and one.dtype and default and one.rate >= PROOF_SHARE * default:
            fastest[one.dtype] = max(fastest.get(one.dtype, (0.0, "")), (one.rate, one.label))
    tflops = tuple(
        (dtype, rate, f"achievable arithmetic ({dtype}): {rate:.0f} TFLOP/s, reached by {label} here")
        for dtype, (rate, label) in fastest.items()
    )
    return replace(result, proven_tflops=tflops)


def _proof_bytes(gpu: Gpu) -> float:
    cache_mb = max(gpu.l2_mb or 0.0, gpu.last_level_cache_mb or 0.0)
    return max(CACHE_MULTIPLE * cache_mb * 1e6, LEAST_PROOF_BYTES)
