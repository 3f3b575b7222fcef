"""Which share of a GPU's peaks the kernels of each class reach, what a kernel and a step cost beside, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.hardware import SHORTEST_KERNEL_NS, Gpu, HardwareError, roofs
from traceanalyzer.model import Op

CLASSES = ("dense", "experts", "attention", "elementwise")
"""Classes of ops that efficiencies are kept for: dense matrix products, experts' ones, attention, and the rest."""

LARGEST_SHARE = 1.0

OF_ACHIEVABLE = {
    # class: (share of the achievable arithmetic, share of the achievable bandwidth)
    "dense": (0.95, 0.70),
    "experts": (0.48, 0.70),
    "attention": (0.33, 0.70),
    "elementwise": (0.95, 0.60),
}
"""Defaults, as shares of what is achievable on the GPU at all. See ``SOURCES`` for where each is from."""

DENSE_MEMORY = {"nvidia": 0.95}
"""Vendor -> share of the achievable bandwidth that dense products reach there, where it differs."""

SOURCES = {
    "dense": "arithmetic: QKV products of an 8,192-token step on MI300X; bandwidth: {dense}",
    "experts": "arithmetic: experts of an 8,192-token step on MI300X; bandwidth: the geometric mean of what was seen, "
    "0.34 (MI300X, untuned tiles) to 1.0 (Radeon 8060S, tuned tiles)",
    "attention": "arithmetic: full attention of an 8,192-token step on MI300X (Hopper does better); bandwidth: full "
    "attention of a decode step on MI300X",
    "elementwise": "norms, rotation and combination of an 8,192-token step on MI300X",
}

DENSE_SOURCE = {
    "nvidia": "decode of Llama-3.1-8B for one sequence on A100 and H100, published",
    "amd": "dense products of two decode traces on MI300X, vLLM and SGLang, launching taken off",
}

KERNEL_NS = {"nvidia": 1_600.0, "amd": float(SHORTEST_KERNEL_NS)}
"""What a kernel takes beside its work, by vendor: the 5 % quantile of kernels in traces of an H100 and an MI300X."""

STEP_NS = 800_000.0
"""What the host and the gaps between kernels add to a step: 0.6 to 1.2 ms were left over in TPOT of gpt-oss-120b on
eight B200, H200 or H100 for four requests (InferenceMAX, vLLM), where kernels do least."""

REQUEST_NS = 20_000_000.0
"""What HTTP, tokenising and scheduling add to a request's first token: left over there in TTFT."""


@dataclass(frozen=True)
class Share:
    """The share of a peak that kernels of one class reach.

    Attributes:
        compute: of the dense peak of arithmetic.
        memory: of the peak memory bandwidth.
    """

    compute: float
    memory: float


@dataclass(frozen=True)
class Efficiencies:
    """How fast kernels run compared with the peaks: T = max(FLOP / (peak e_c), bytes / (bandwidth e_m)) + latency.

    Attributes:
        shares: class of op -> shares of the peaks.
        kernel_ns: added for every kernel.
        step_ns: added to every step.
        request_ns: added to a request's first token.
        basis: what the figures rest on.
    """

    shares: Mapping[str, Share]
    kernel_ns: float
    step_ns: float
    request_ns: float = 0.0
    basis: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, share in self.shares.items():
            for kind, value in (("arithmetic", share.compute), ("bandwidth", share.memory)):
                if not 0 < value <= LARGEST_SHARE:
                    raise EstimateError(f"{name}: the share of peak {kind} must be above 0 and at most 1, not {value}")
        for what, extra in (("kernel", self.kernel_ns), ("step", self.step_ns), ("request", self.request_ns)):
            if not 0 <= extra < float("inf"):
                raise EstimateError(f"the time added to a {what} must be 0 or more")


ROOFLINE = Efficiencies(
    {name: Share(1.0, 1.0) for name in CLASSES}, 0.0, 0.0, 0.0, ("every kernel at the peak, launching free: a floor",)
)
"""Peaks themselves: what no engine can beat."""


def class_of(op: Op) -> str:
    """Return the class of an op that is not a collective."""
    if op.role in ("moe_gate_up", "moe_down"):
        return "experts"
    if op.role == "attention":
        return "attention"
    return "dense" if op.m is not None else "elementwise"


def default_efficiencies(gpu: Gpu) -> Efficiencies:
    """Return the defaults for a GPU: ``OF_ACHIEVABLE`` of what is achievable on it.

    Raises:
        HardwareError: no peak of the GPU is known.
    """
    dtype = next((known for known in ("bf16", "fp16", "fp8", "int8", "fp32") if known in gpu.peak_tflops), "bf16")
    roof = roofs(gpu, dtype)
    compute, memory = roof.achievable_tflops / roof.peak_tflops, roof.achievable_gbps / roof.bandwidth_gbps
    vendor = gpu.vendor if gpu.vendor in KERNEL_NS else None
    dense_memory = DENSE_MEMORY.get(vendor or "", OF_ACHIEVABLE["dense"][1])
    of_achievable = {**OF_ACHIEVABLE, "dense": (OF_ACHIEVABLE["dense"][0], dense_memory)}
    shares = {
        name: Share(min(c * compute, LARGEST_SHARE), min(m * memory, LARGEST_SHARE))
        for name, (c, m) in of_achievable.items()
    }
    kernel_ns = KERNEL_NS[vendor or "amd"]
    notes = [note for note in roof.notes if "achievable" in note]
    notes += [
        f"{name}: {shares[name].compute:.0%} of peak arithmetic, {shares[name].memory:.0%} of peak bandwidth "
        f"({SOURCES[name].format(dense=DENSE_SOURCE[vendor or 'amd'])})"
        for name in CLASSES
    ]
    seen = {"nvidia": "an H100", "amd": "an MI300X", None: "an MI300X, for want of anything else"}[vendor]
    notes.append(f"{kernel_ns / 1000:g} µs more for every kernel, as the shortest kernels in a trace of {seen} take")
    notes.append(
        f"{STEP_NS / 1e6:g} ms more for every step (host, gaps) and {REQUEST_NS / 1e6:g} ms for a request's first "
        "token (HTTP, tokenising), as was left over for gpt-oss-120b on eight GPUs and four requests (InferenceMAX)"
    )
    return Efficiencies(shares, kernel_ns, STEP_NS, REQUEST_NS, tuple(notes))


def scaled(efficiencies: Efficiencies, factor: float) -> Efficiencies:
    """Return the efficiencies with every share multiplied, none above 1."""
    shares = {
        name: Share(min(share.compute * factor, LARGEST_SHARE), min(share.memory * factor, LARGEST_SHARE))
        for name, share in efficiencies.shares.items()
    }
    return replace(efficiencies, shares=shares)


def peak_tflops(gpu: Gpu, dtype: str) -> float | None:
    """Return the peak that bounds arithmetic of a type; None for vector units of a GPU whose fp32 peak is unknown.

    Raises:
        HardwareError: a matrix type of which neither a peak nor a stand-in is known.
    """
    try:
        return roofs(gpu, dtype).peak_tflops
    except HardwareError:
        if dtype == "fp32":
            return None
        raise
