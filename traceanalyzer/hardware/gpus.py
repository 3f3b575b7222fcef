"""The table of GPUs in gpus.csv: dense peaks, bandwidth and sizes, each row with its source."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True)
class Gpu:
    """One GPU model.

    Attributes:
        name: the product's short name, such as ``MI300X``.
        vendor: ``nvidia`` or ``amd``.
        architecture: the vendor's name of the generation.
        compute_capability: major.minor as the profiler writes it (ROCm: the gfx number's first digits).
        target: compiler target, such as ``sm_90`` or ``gfx942``.
        warp_size: threads of a warp (wavefront).
        compute_units: SMs or CUs.
        memory_gb: nominal device memory, decimal GB.
        bandwidth_gbps: peak memory bandwidth, GB/s.
        peak_tflops: dense peak by data type (fp32, tf32, bf16, fp16, fp8, int8, fp4), 10^12 operations a second;
            a type the GPU lacks or whose figure is unknown is absent.
        device_names: names under which drivers report it.
        source: where the figures come from.
        confidence: ``A`` (vendor figures, two sources agree) to ``C`` (derived or a single weak source).
        note: what to know about the figures.
    """

    name: str
    vendor: str
    architecture: str
    compute_capability: str
    target: str
    warp_size: int
    compute_units: int
    memory_gb: float
    bandwidth_gbps: float
    peak_tflops: dict[str, float]
    device_names: tuple[str, ...]
    source: str
    confidence: str
    note: str | None


@lru_cache(maxsize=1)
def known_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the table, in its order."""
    text = resources.files(__package__).joinpath("gpus.csv").read_text(encoding="utf-8")
    return tuple(_gpu(row) for row in csv.DictReader(text.splitlines()))


def _gpu(row: dict[str, str]) -> Gpu:
    peaks = {
        column.partition("_")[0]: float(row[column])
        for column in row
        if column.endswith(("_tflops", "_tops")) and not column.startswith("measured") and row[column]
    }
    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        compute_capability=row["compute_capability"],
        target=row["target"],
        warp_size=int(row["warp_size"]),
        compute_units=int(row["compute_units"]),
        memory_gb=float(row["memory_gb"]),
        bandwidth_gbps=float(row["bandwidth_gbps"]),
        peak_tflops=peaks,
        device_names=tuple(row["device_names"].split("; ")) if row["device_names"] else (),
        source=row["source"],
        confidence=row["confidence"],
        note=row["note"] or None,
    )
