"""gpus.md: the GPUs whose limits are known."""

from __future__ import annotations

from docs.generate.markdown import figure, join, note, table
from traceanalyzer.hardware import known_gpus
from traceanalyzer.hardware.gpus import CONFIDENCE, DTYPES

HEAD = """
# GPUs

What is built in. Peaks are dense, in 10^12 operations a second; an empty cell is unknown or not supported. Bandwidths
are GB/s (10^9 bytes), links in one direction and all links of a GPU together. What is achievable, and how that is
known, is told by `traceanalyzer gpus NAME`. `--gpu-file FILE` adds GPUs or replaces figures, see
[roofline.md](../roofline.md).
"""


def page() -> str:
    """Return the page's text."""
    gpus = known_gpus()
    limits = table(
        ("GPU", "vendor", "architecture", "target", "units", "MHz", "GB", "GB/s", *DTYPES, "link", "GB/s link"),
        (
            (
                *(gpu.name, gpu.vendor or "", gpu.architecture or "", gpu.target or "", figure(gpu.compute_units)),
                *(figure(gpu.clock_mhz), figure(gpu.memory_gb), figure(gpu.bandwidth_gbps)),
                *(figure(gpu.peak_tflops.get(dtype)) for dtype in DTYPES),
                *(gpu.link or "", figure(gpu.link_gbps)),
            )
            for gpu in gpus
        ),
    )
    measured = table(
        ("GPU", "L2 MB", "next cache, MB", "PCIe", "measured bf16, 10^12/s", "measured GB/s", "drivers call it"),
        (
            (
                *(gpu.name, figure(gpu.l2_mb), figure(gpu.last_level_cache_mb), gpu.pcie or ""),
                *(figure(gpu.measured_bf16_tflops), figure(gpu.measured_bandwidth_gbps), "; ".join(gpu.device_names)),
            )
            for gpu in gpus
        ),
    )
    sources = table(
        ("GPU", "confidence", "source", "note"), ((g.name, g.confidence, g.source, g.note or "") for g in gpus)
    )
    grades = "\n".join(f"- {grade}: {meaning}" for grade, meaning in CONFIDENCE.items() if grade != "user")
    return join(
        note("traceanalyzer/hardware/gpus.csv"),
        HEAD.strip(),
        "## Limits",
        limits,
        "## Caches, measurements, names",
        "Measured: the best published figure; see the sources.",
        measured,
        "## Sources",
        "Confidence:",
        grades,
        sources,
    )
