"""The table of GPUs in gpus.csv: dense peaks, bandwidth and sizes, each row with its source."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True)
class Gpu:
    """One GPU model. Null where the figure is unknown.

    Attributes:
        name: the product's short name, such as ``MI300X``.
        vendor: ``nvidia`` or ``amd``; as the user writes it in a file of their own.
        architecture: the vendor's name of the generation.
        compute_capability: major.minor as the profiler writes it (ROCm: the gfx number's first digits).
        target: compiler target, such as ``sm_90`` or ``gfx942``.
        warp_size: threads of a warp (wavefront).
        compute_units: SMs or CUs.
        clock_mhz: boost clock that the peaks are figured with.
        memory_gb: nominal device memory, decimal GB.
        bandwidth_gbps: peak memory bandwidth, GB/s.
        l2_mb: L2 cache, MB.
        last_level_cache_mb: cache behind L2 (AMD's Infinity Cache), MB.
        peak_tflops: dense peak by data type (fp32, tf32, bf16, fp16, fp8, int8, fp4), 10^12 operations a second;
            a type the GPU lacks or whose figure is unknown is absent.
        link: what joins GPUs of a node, such as ``NVLink4`` or ``xGMI``.
        link_gbps: bandwidth of a GPU's links together, GB/s in one direction.
        pcie: generation and lanes, such as ``5.0x16``.
        measured_bf16_tflops: the best matrix product somebody measured in bf16.
        measured_bandwidth_gbps: the best memory bandwidth somebody measured.
        device_names: names under which drivers report it.
        source: where the figures come from.
        confidence: ``A`` (vendor figures, two sources agree) to ``C`` (derived or a single weak source); ``user``
            for a GPU described by the user.
        note: what to know about the figures.
    """

    name: str
    vendor: str | None
    architecture: str | None
    compute_capability: str | None
    target: str | None
    warp_size: int | None
    compute_units: int | None
    clock_mhz: float | None
    memory_gb: float | None
    bandwidth_gbps: float
    l2_mb: float | None
    last_level_cache_mb: float | None
    peak_tflops: dict[str, float]
    link: str | None
    link_gbps: float | None
    pcie: str | None
    measured_bf16_tflops: float | None
    measured_bandwidth_gbps: float | None
    device_names: tuple[str, ...]
    source: str
    confidence: str
    note: str | None


DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Data types that a peak can be given for."""

PEAK_COLUMNS = {dtype: f"{dtype}_tops" if dtype == "int8" else f"{dtype}_tflops" for dtype in DTYPES}


@lru_cache(maxsize=1)
def known_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the table, in its order."""
    text = resources.files(__package__).joinpath("gpus.csv").read_text(encoding="utf-8")
    return tuple(_gpu(row) for row in csv.DictReader(text.splitlines()))


def _gpu(row: dict[str, str]) -> Gpu:
    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        compute_capability=row["compute_capability"],
        target=row["target"],
        warp_size=int(row["warp_size"]),
        compute_units=int(row["compute_units"]),
        clock_mhz=_number(row["clock_mhz"]),
        memory_gb=float(row["memory_gb"]),
        bandwidth_gbps=float(row["bandwidth_gbps"]),
        l2_mb=_number(row["l2_mb"]),
        last_level_cache_mb=_number(row["last_level_cache_mb"]),
        peak_tflops={dtype: float(row[column]) for dtype, column in PEAK_COLUMNS.items() if row[column]},
        link=row["link"] or None,
        link_gbps=_number(row["link_gbps_per_direction"]),
        pcie=row["pcie"] or None,
        measured_bf16_tflops=_number(row["measured_bf16_tflops"]),
        measured_bandwidth_gbps=_number(row["measured_bandwidth_gbps"]),
        device_names=tuple(row["device_names"].split("; ")) if row["device_names"] else (),
        source=row["source"],
        confidence=row["confidence"],
        note=row["note"] or None,
    )


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
