"""What joins the GPUs of a layout: bandwidth and latency, and how long a collective takes on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Op

LINK_SHARE = 0.7
"""Share of a link's nominal bandwidth that collectives reach; assumed."""

HOP_NS = {"direct": 1_000.0, "pcie": 6_000.0}
"""Latency of one hop of a ring, over NVLink or xGMI and over PCIe; assumed."""

HOPS: dict[str, Callable[[int], int]] = {
    "all_reduce": lambda n: 2 * (n - 1),
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: n - 1,
    "all_to_all": lambda n: n - 1,
    "send": lambda n: 1,
}
"""Collective -> hops of a ring over n GPUs that follow one another."""


@dataclass(frozen=True)
class Link:
    """The connection between GPUs.

    Attributes:
        gbps: what a GPU sends at in one direction during a collective, GB/s.
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
"""A link that takes no time: what is left is the kernels'."""


def default_link(gpu: Gpu) -> Link | None:
    """Return a GPU's link at ``LINK_SHARE`` of its nominal bandwidth; None where no link is known."""
    if gpu.link_gbps is None:
        return None
    kind = "pcie" if "pcie" in (gpu.link or "pcie").lower() else "direct"
    basis = (
        f"{gpu.link} at {LINK_SHARE:.0%} of {gpu.link_gbps:g} GB/s in one direction, "
        f"{HOP_NS[kind] / 1000:g} µs per hop: assumed; --link-gbps takes what was measured"
    )
    return Link(gpu.link_gbps * LINK_SHARE, HOP_NS[kind], basis)


def measured_link(gpu: Gpu, gbps: float) -> Link:
    """Return a link of a stated bandwidth, GB/s in one direction.

    Raises:
        EstimateError: the bandwidth is not above 0.
    """
    nominal = default_link(gpu)
    hop = nominal.hop_ns if nominal else HOP_NS["pcie"]
    return Link(gbps, hop, f"link of {gbps:g} GB/s in one direction, as given; {hop / 1000:g} µs per hop, assumed")


def with_gbps(link: Link, gbps: float) -> Link:
    """Return the link at another bandwidth."""
    return replace(link, gbps=gbps)


def collective_ns(op: Op, link: Link) -> float:
    """Return the time of a collective: bytes on the wire / bandwidth + hops x latency."""
    hops = HOPS[op.collective or "send"](op.ranks or 2)
    return (op.wire_bytes or 0.0) / link.gbps + hops * link.hop_ns
