"""The table of GPUs in gpus.csv: dense peaks, bandwidth and sizes, each row with its source."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec

from traceanalyzer.declare import Part, told


class HardwareError(ValueError):
    """A GPU is unknown or badly described; one line that says what to give instead."""


CONFIDENCE = {
    "A": "vendor figures, or two sources that agree",
    "B": "one second-hand source",
    "C": "derived, or a single weak source",
    "user": "described by the user (--gpu-file)",
}
"""How far a GPU's figures can be trusted -> why."""


class Gpu(Part):
    """A GPU model. Peaks are dense; confidence says how far its figures can be trusted."""

    name: Annotated[str, told("Short name of the product, such as MI300X.")]
    vendor: Annotated[str | None, told("nvidia or amd; as written in --gpu-file.", null="not stated")]
    architecture: Annotated[str | None, told("The vendor's name of the generation.", null="unknown")]
    compute_capability: Annotated[
        str | None,
        told("major.minor as the profiler writes it; ROCm: the gfx number's first digits.", null="unknown"),
    ]
    target: Annotated[str | None, told("Compiler target, such as sm_90 or gfx942.", null="unknown")]
    warp_size: Annotated[int | None, told("Threads of a warp (wavefront).", null="unknown")]
    compute_units: Annotated[int | None, told("SMs or CUs.", null="unknown")]
    clock_mhz: Annotated[
        float | None, told("Boost clock that the peaks are computed from.", null="unknown", unit="MHz")
    ]
    memory_gb: Annotated[float | None, told("Device memory, nominal.", null="unknown", unit="GB", heading="GB")]
    bandwidth_gbps: Annotated[float, told("Peak memory bandwidth.", heading="GB/s")]
    l2_mb: Annotated[float | None, told("L2 cache.", null="unknown", unit="MB")]
    last_level_cache_mb: Annotated[
        float | None, told("Cache behind L2, such as AMD's Infinity Cache.", null="none, or unknown", unit="MB")
    ]
    peak_tflops: Annotated[
        dict[str, float], told("Dense peak by data type; absent where the GPU lacks the type or it is unknown.")
    ]
    link: Annotated[str | None, told("What connects GPUs of a node, such as NVLink4 or xGMI.", null="unknown")]
    link_gbps: Annotated[float | None, told("All links of a GPU together, one direction.", null="unknown")]
    pcie: Annotated[str | None, told("Generation and lanes, such as 5.0x16.", null="unknown")]
    measured_bf16_tflops: Annotated[
        float | None, told("Best bf16 matrix product measured by anybody.", null="none known", basis="measured")
    ]
    measured_bandwidth_gbps: Annotated[
        float | None, told("Best bandwidth measured by anybody.", null="none known", basis="measured")
    ]
    device_names: Annotated[tuple[str, ...], told("Names under which drivers report it.")]
    source: Annotated[str, told("Where the figures are from.")]
    confidence: Annotated[
        Literal["A", "B", "C", "user"], told("; ".join(f"{grade}: {what}" for grade, what in CONFIDENCE.items()) + ".")
    ]
    note: Annotated[str | None, told("What to know about the figures.", null="nothing")]


DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Data types that a peak can be given for."""

PEAK_COLUMNS = {dtype: f"{dtype}_tops" if dtype == "int8" else f"{dtype}_tflops" for dtype in DTYPES}


@lru_cache(maxsize=1)
def known_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the table, in its order."""
    text = resources.files(__package__).joinpath("gpus.csv").read_text(encoding="utf-8")
    return tuple(_gpu(row) for row in csv.DictReader(text.splitlines()))


def _gpu(row: dict[str, str]) -> Gpu:
    given: dict[str, Any] = {name: row[name] or None for name in Gpu.__struct_fields__ if name in row}
    given |= {
        "peak_tflops": {dtype: row[column] for dtype, column in PEAK_COLUMNS.items() if row[column]},
        "link_gbps": row["link_gbps_per_direction"] or None,
        "device_names": tuple(filter(None, row["device_names"].split("; "))),
    }
    return msgspec.convert(given, Gpu, strict=False)
