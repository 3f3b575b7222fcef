"""Utilisation logs of nvidia-smi, amd-smi, rocm-smi and DCGM, averaged per GPU."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceanalyzer.problems import TraceError
from traceanalyzer.serving.serving_result import as_number
from traceanalyzer.serving.text_files import text_of

FIGURES = (
    "gpu_percent",
    "memory_controller_percent",
    "memory_used_mib",
    "memory_used_percent",
    "pcie_rx_mb_s",
    "pcie_tx_mb_s",
    "pcie_both_mb_s",
    "power_w",
)
"""What is averaged. MB is 10^6 bytes; ``pcie_both`` where a tool reports the two directions together."""


@dataclass(frozen=True)
class Meaning:
    """What a column holds, and the factor that brings it to the figure's unit."""

    figure: str
    factor: float = 1.0


# Headings are compared in lower case, with everything but letters and digits removed, without their unit.
HEADINGS: dict[str, Meaning] = {
    # nvidia-smi --query-gpu
    "utilizationgpu": Meaning("gpu_percent"),
    "utilizationmemory": Meaning("memory_controller_percent"),
    "memoryused": Meaning("memory_used_mib"),
    "memorytotal": Meaning("memory_total_mib"),
    "powerdraw": Meaning("power_w"),
    "powerdrawaverage": Meaning("power_w"),
    "powerdrawinstant": Meaning("power_w"),
    # nvidia-smi dmon: rates in MB/s, memory in MB of 2^20
    "sm": Meaning("gpu_percent"),
    "mem": Meaning("memory_controller_percent"),
    "fb": Meaning("memory_used_mib"),
    "rxpci": Meaning("pcie_rx_mb_s"),
    "txpci": Meaning("pcie_tx_mb_s"),
    "pwr": Meaning("power_w"),
    # amd-smi monitor and metric, rocm-smi
    "gfx": Meaning("gpu_percent"),
    "gfxutil": Meaning("gpu_percent"),
    "gfxactivity": Meaning("gpu_percent"),
    "umcactivity": Meaning("memory_controller_percent"),
    "vramused": Meaning("memory_used_mib"),
    "usedvram": Meaning("memory_used_mib"),
    "vramtotal": Meaning("memory_total_mib"),
    "totalvram": Meaning("memory_total_mib"),
    "vrampercent": Meaning("memory_used_percent"),
    "powerusage": Meaning("power_w"),
    "socketpower": Meaning("power_w"),
    "pciebw": Meaning("pcie_both_mb_s", 0.125),
    "gpuuse": Meaning("gpu_percent"),
    "gpumemoryuse": Meaning("memory_controller_percent"),
    "gpumemoryallocated": Meaning("memory_used_percent"),
    "averagegraphicspackagepower": Meaning("power_w"),
    "currentsocketgraphicspackagepower": Meaning("power_w"),
    # DCGM field names and the short headings of dcgmi dmon; profiling rates are bytes/s, device counters KB/s
    "dcgmfidevgpuutil": Meaning("gpu_percent"),
    "gputl": Meaning("gpu_percent"),
    "dcgmfiprofgrengineactive": Meaning("gpu_percent", 100.0),
    "gract": Meaning("gpu_percent", 100.0),
    "dcgmfidevmemcopyutil": Meaning("memory_controller_percent"),
    "mcutl": Meaning("memory_controller_percent"),
    "dcgmfiprofdramactive": Meaning("memory_controller_percent", 100.0),
    "drama": Meaning("memory_controller_percent", 100.0),
    "dcgmfidevfbused": Meaning("memory_used_mib"),
    "fbusd": Meaning("memory_used_mib"),
    "dcgmfidevfbtotal": Meaning("memory_total_mib"),
    "fbttl": Meaning("memory_total_mib"),
    "dcgmfiprofpcierxbytes": Meaning("pcie_rx_mb_s", 1e-6),
    "dcgmfiprofpcietxbytes": Meaning("pcie_tx_mb_s", 1e-6),
    "pcirx": Meaning("pcie_rx_mb_s", 1e-6),
    "pcitx": Meaning("pcie_tx_mb_s", 1e-6),
    "dcgmfidevpcierxthroughput": Meaning("pcie_rx_mb_s", 1e-3),
    "dcgmfidevpcietxthroughput": Meaning("pcie_tx_mb_s", 1e-3),
    "dcgmfidevpowerusage": Meaning("power_w"),
    "power": Meaning("power_w"),
}
GPU_HEADINGS = ("index", "gpu", "gpuid", "gpuindex", "idx", "device", "entity", "card", "uuid", "gpuuuid", "pcibusid")
UNIT = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Utilisation:
    """A log in averages.

    Attributes:
        source: the file.
        gpus: one row a GPU in order of id: gpu (text), samples, and the ``FIGURES`` the log has (null where not).
    """

    source: str
    gpus: pl.DataFrame


def read_utilisation(path: str) -> Utilisation:
    """Average a log per GPU, over all its samples; start and stop logging with the benchmark.

    Raises:
        TraceError: the file cannot be read, or has no column that is known.
    """
    rows = [row for row in _rows(text_of(Path(path))) if row]
    heading = next((row for row in rows if _figures(row)), None)
    if heading is None:
        raise TraceError(
            path,
            "has no column of GPU use, memory use, PCIe traffic or power; log with e.g. nvidia-smi "
            "--query-gpu=timestamp,index,utilization.gpu,memory.used,memory.total --format=csv -l 1, nvidia-smi dmon, "
            "amd-smi monitor --csv or dcgmi dmon",
        )
    samples = [sample for row in rows if (sample := _sample(heading, row)) is not None]
    if not samples:
        raise TraceError(path, "has a heading but no samples")
    return Utilisation(path, _averages(samples))


def _rows(text: str) -> Iterable[list[str]]:
    """Split a log into cells: CSV where there are commas, else columns of blanks (``dmon``)."""
    for line in text.splitlines():
        plain = line.strip().lstrip("#").strip()
        if not plain:
            continue
        if "," in plain:
            yield [cell.strip() for cell in next(csv.reader(io.StringIO(plain), skipinitialspace=True))]
        else:
            # dcgmi dmon writes the entity as "GPU 0".
            yield re.sub(r"^GPU (\d+)\b", r"\1", plain).split()


def _key(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", UNIT.sub("", heading).lower())


def _figures(row: Sequence[str]) -> list[str]:
    return [cell for cell in row if _key(cell) in HEADINGS]


def _sample(heading: Sequence[str], row: Sequence[str]) -> dict[str, str | float | None] | None:
    """Read one line by the heading; null for repeated headings, lines of units and broken lines."""
    if len(row) != len(heading) or _figures(row):
        return None
    gpu: str | None = None
    rank = len(GPU_HEADINGS)
    figures: dict[str, float] = {}
    for name, cell in zip(heading, row, strict=True):
        key = _key(name)
        if key in GPU_HEADINGS and GPU_HEADINGS.index(key) < rank:
            gpu, rank = cell, GPU_HEADINGS.index(key)
        meaning = HEADINGS.get(key)
        value = None if meaning is None else _number(cell)
        if meaning is not None and value is not None:
            figures.setdefault(meaning.figure, value * meaning.factor * _unit_factor(name, cell))
    if not figures:
        return None
    return {"gpu": gpu or "all", **figures}


def _number(cell: str) -> float | None:
    found = NUMBER.match(cell.strip())
    return None if found is None else as_number(found.group())


def _unit_factor(heading: str, cell: str) -> float:
    """Bring memory that a log states in GiB or bytes to MiB; other units are those of the heading table."""
    told = f"{heading} {cell}".lower()
    if not ("mem" in told or "vram" in told or "fb" in told):
        return 1.0
    if re.search(r"\bgi?b\b", told):
        return 1024.0
    return 1 / (1 << 20) if re.search(r"\((b|bytes)\)|\[(b|bytes)\]", told) else 1.0


def _averages(samples: Sequence[dict[str, str | float | None]]) -> pl.DataFrame:
    schema: dict[str, type[pl.DataType]] = {
        "gpu": pl.String,
        "memory_total_mib": pl.Float64,
        **dict.fromkeys(FIGURES, pl.Float64),
    }
    frame = pl.DataFrame(samples, schema=schema)
    share = pl.col("memory_used_mib") / pl.col("memory_total_mib") * 100
    return (
        frame.with_columns(memory_used_percent=pl.coalesce("memory_used_percent", share))
        .group_by("gpu")
        .agg(pl.len().alias("samples"), *(pl.col(figure).mean() for figure in FIGURES))
        .with_columns(number=pl.col("gpu").str.extract(r"(\d+)$").cast(pl.Int64, strict=False))
        .sort("number", "gpu", nulls_last=True)
        .drop("number")
    )
