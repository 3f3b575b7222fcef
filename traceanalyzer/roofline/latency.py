"""What a kernel takes that does next to nothing: measured on the trace where it has enough kernels."""

from __future__ import annotations

import polars as pl

from traceanalyzer.hardware import SHORTEST_KERNEL_NS
from traceanalyzer.roofline.roofline_result import Latency

QUANTILE = 0.05
LEAST_KERNELS = 50
"""Which quantile, and of how many kernels at minimum. Both chosen, not fitted."""

LONGEST_NS = 10_000.0
"""A quantile above this is not a launch latency: the trace then has no tiny kernels. Chosen, not fitted."""


def latency_floor(kernels: pl.DataFrame) -> Latency:
    """Return the 5 % quantile of the kernels' durations, or the default where they are few or all of them long.

    A low quantile rather than the minimum: single kernels may be cut off or run beside others.

    Args:
        kernels: a frame with dur_ns.
    """
    if kernels.height >= LEAST_KERNELS:
        value = kernels["dur_ns"].quantile(QUANTILE, "linear")
        if value is not None and 0 < value <= LONGEST_NS:
            basis = f"launch latency {value / 1000:.1f} µs: the {QUANTILE:.0%} quantile of {kernels.height:,} kernels"
            return Latency(float(value), basis, measured=True)
        why = "no short kernels here"
    else:
        why = "too few kernels here"
    default = f"launch latency {SHORTEST_KERNEL_NS / 1000:.1f} µs: assumed, as seen on MI300X ({why})"
    return Latency(float(SHORTEST_KERNEL_NS), default, measured=False)
