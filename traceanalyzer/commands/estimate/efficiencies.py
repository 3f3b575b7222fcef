"""How fast kernels and links are taken to be: shares of the peaks, fixed costs per kernel, step and hop, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from traceanalyzer.hardware import SHORTEST_KERNEL_NS, Gpu, HardwareError, roofs
from traceanalyzer.model import Op

CLASSES = ("dense", "experts", "attention", "elementwise")
"""Classes of ops, each with efficiencies of its own: dense GEMMs, expert GEMMs, attention, and everything else."""

OF_ACHIEVABLE = {
    # class: (share of the achievable arithmetic, share of the achievable bandwidth)
    "dense": (0.95, 0.70),
    "experts": (0.48, 0.70),
    "attention": (0.33, 0.70),
    "elementwise": (0.95, 0.60),
}
"""Defaults, as shares of what the GPU can achieve at all. ``SOURCES`` says where each comes from."""

DENSE_MEMORY = {"nvidia": 0.95}
"""Vendor -> share of the achievable bandwidth that dense GEMMs reach on its GPUs, where it is not the default."""

SOURCES = {
    "dense": "arithmetic: QKV GEMMs of an 8,192-token step on MI300X; bandwidth: {dense}",
    "experts": "arithmetic: expert GEMMs of an 8,192-token step on MI300X; bandwidth: geometric mean of measured "
    "shares, 0.34 (MI300X, untuned tiles) to 1.0 (Radeon 8060S, tuned tiles)",
    "attention": "arithmetic: full attention of an 8,192-token step on MI300X (Hopper does better); bandwidth: full "
    "attention of a decode step on MI300X",
    "elementwise": "norms, RoPE and MoE combine of an 8,192-token step on MI300X",
}

DENSE_SOURCE = {
    "nvidia": "published decode of Llama-3.1-8B at batch 1 on A100 and H100",
    "amd": "dense GEMMs in two decode traces on MI300X, vLLM and SGLang, launch latency subtracted",
}

KERNEL_NS = {"nvidia": 1_600.0, "amd": float(SHORTEST_KERNEL_NS)}
"""Fixed time of a kernel, by vendor: the 5 % quantile of kernels in traces of an H100 and an MI300X."""

STEP_NS = 800_000.0
"""Time per step for the host and the gaps between kernels. Kernels do not explain 0.6 to 1.2 ms of the TPOT of
gpt-oss-120b on eight B200, H200 or H100 with four requests in flight (InferenceMAX, vLLM), where they do least."""

REQUEST_NS = 20_000_000.0
"""Time of HTTP, tokenising and scheduling before a request's first token: what is left of TTFT in the same runs."""

LINK_SHARE = 0.7
"""Share of a link's nominal bandwidth that collectives reach; chosen, not fitted."""

HOP_NS = {"direct": 1_000.0, "pcie": 6_000.0}
"""Latency of one hop of a ring, over NVLink or xGMI and over PCIe; chosen, not fitted."""

HOPS: dict[str, Callable[[int], int]] = {
    "all_reduce": lambda n: 2 * (n - 1),
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: n - 1,
    "all_to_all": lambda n: n - 1,
    "send": lambda n: 1,
}
"""Collective -> consecutive hops in a ring of n GPUs."""


class EstimateError(ValueError):
    """An estimate is impossible: one line that says what to give instead."""


@dataclass(frozen=True)
class Share:
    """Shares of the dense peak of arithmetic and of the peak memory bandwidth that kernels of one class reach."""

    compute: float
    memory: float


@dataclass(frozen=True)
class Efficiencies:
    """How fast kernels run compared with the peaks: T = max(FLOP / (peak e_c), bytes / (bandwidth e_m)) + latency.

    Attributes:
        shares: class of op -> shares of the peaks.
        kernel_ns: fixed time per kernel.
        step_ns: fixed time per step.
        request_ns: fixed time before a request's first token.
        basis: where the figures come from.
    """

    shares: Mapping[str, Share]
    kernel_ns: float
    step_ns: float
    request_ns: float = 0.0
    basis: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, share in self.shares.items():
            for kind, value in (("arithmetic", share.compute), ("bandwidth", share.memory)):
                if not 0 < value <= 1.0:
                    raise EstimateError(f"{name}: the share of peak {kind} must be above 0 and at most 1, not {value}")
        for what, extra in (("kernel", self.kernel_ns), ("step", self.step_ns), ("request", self.request_ns)):
            if not 0 <= extra < float("inf"):
                raise EstimateError(f"the time added to a {what} must be 0 or more")

    def slowed(self, slowness: float) -> Efficiencies:
        """Return efficiencies whose kernels take this many times as long; no share exceeds 1."""
        shares = {
            name: Share(min(share.compute / slowness, 1.0), min(share.memory / slowness, 1.0))
            for name, share in self.shares.items()
        }
        return replace(self, shares=shares, kernel_ns=self.kernel_ns * slowness)


ROOFLINE = Efficiencies(
    {name: Share(1.0, 1.0) for name in CLASSES}, 0.0, 0.0, 0.0, ("every kernel at the peak, launches free: a floor",)
)
"""The peaks themselves: no engine is faster."""


def class_of(op: Op) -> str:
    """Return the class of an op other than a collective."""
    if op.role in ("moe_gate_up", "moe_down"):
        return "experts"
    if op.role == "attention":
        return "attention"
    return "dense" if op.m is not None else "elementwise"


def default_efficiencies(gpu: Gpu) -> Efficiencies:
    """Return the defaults for a GPU: ``OF_ACHIEVABLE`` of what it can achieve.

    Raises:
        HardwareError: the GPU has no known peak.
    """
    dtype = next((known for known in ("bf16", "fp16", "fp8", "int8", "fp32") if known in gpu.peak_tflops), "bf16")
    roof = roofs(gpu, dtype)
    compute, memory = roof.achievable_tflops / roof.peak_tflops, roof.achievable_gbps / roof.bandwidth_gbps
    vendor = gpu.vendor if gpu.vendor in KERNEL_NS else None
    dense_memory = DENSE_MEMORY.get(vendor or "", OF_ACHIEVABLE["dense"][1])
    of_achievable = {**OF_ACHIEVABLE, "dense": (OF_ACHIEVABLE["dense"][0], dense_memory)}
    shares = {name: Share(min(c * compute, 1.0), min(m * memory, 1.0)) for name, (c, m) in of_achievable.items()}
    kernel_ns = KERNEL_NS[vendor or "amd"]
    notes = [note for note in roof.notes if "achievable" in note]
    notes += [
        f"{name}: {shares[name].compute:.0%} of peak arithmetic, {shares[name].memory:.0%} of peak bandwidth "
        f"({SOURCES[name].format(dense=DENSE_SOURCE[vendor or 'amd'])})"
        for name in CLASSES
    ]
    seen = {"nvidia": "an H100", "amd": "an MI300X", None: "an MI300X, for lack of a better one"}[vendor]
    notes.append(f"{kernel_ns / 1000:g} µs per kernel, the time of the shortest kernels in a trace of {seen}")
    notes.append(
        f"{STEP_NS / 1e6:g} ms per step (host, gaps) and {REQUEST_NS / 1e6:g} ms before a request's first token (HTTP, "
        "tokenising): what kernels do not explain for gpt-oss-120b on eight GPUs at four requests (InferenceMAX)"
    )
    return Efficiencies(shares, kernel_ns, STEP_NS, REQUEST_NS, tuple(notes))


def peak_tflops(gpu: Gpu, dtype: str) -> float | None:
    """Return the peak for arithmetic in a type; None for vector arithmetic on a GPU whose fp32 peak is unknown.

    Raises:
        HardwareError: a matrix type without a known peak, or that of a type to stand in for it.
    """
    try:
        return roofs(gpu, dtype).peak_tflops
    except HardwareError:
        if dtype == "fp32":
            return None
        raise


@dataclass(frozen=True)
class Link:
    """The connection between GPUs.

    Attributes:
        gbps: bandwidth of a GPU in one direction during a collective, GB/s.
        hop_ns: latency of one hop.
        basis: where the figures come from.
    """

    gbps: float
    hop_ns: float
    basis: str

    def __post_init__(self) -> None:
        if not 0 < self.gbps < float("inf") or not 0 <= self.hop_ns < float("inf"):
            raise EstimateError(f"a link needs a bandwidth above 0 GB/s, not {self.gbps:g}")


FREE_LINK = Link(1e30, 0.0, "a link that costs nothing")
"""Collectives take no time on it, which leaves the time of the kernels."""


def default_link(gpu: Gpu) -> Link | None:
    """Return a GPU's link at ``LINK_SHARE`` of its nominal bandwidth; None where no link is known."""
    if gpu.link_gbps is None:
        return None
    kind = "pcie" if "pcie" in (gpu.link or "pcie").lower() else "direct"
    basis = (
        f"{gpu.link} at {LINK_SHARE:.0%} of {gpu.link_gbps:g} GB/s in one direction, "
        f"{HOP_NS[kind] / 1000:g} µs per hop: assumed; give a measured bandwidth with --link-gbps"
    )
    return Link(gpu.link_gbps * LINK_SHARE, HOP_NS[kind], basis)


def measured_link(gpu: Gpu, gbps: float) -> Link:
    """Return a link of a stated bandwidth, GB/s in one direction; EstimateError unless it is above 0."""
    nominal = default_link(gpu)
    hop = nominal.hop_ns if nominal else HOP_NS["pcie"]
    return Link(gbps, hop, f"link of {gbps:g} GB/s in one direction, as given; {hop / 1000:g} µs per hop, assumed")


def collective_ns(op: Op, link: Link) -> float:
    """Return the time of a collective: bytes on the wire / bandwidth + hops x latency."""
    hops = HOPS[op.collective or "send"](op.ranks or 2)
    return (op.wire_bytes or 0.0) / link.gbps + hops * link.hop_ns
