"""Utilisation logs of nvidia-smi, amd-smi, rocm-smi and DCGM, averaged per GPU."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceanalyzer.declare import rows_of
from traceanalyzer.problems import TraceError
from traceanalyzer.serving.result import GpuUtilisation
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
class LoggedFigure:
    """What a column holds, and the factor that brings it to the figure's unit."""

    figure: str
    factor: float = 1.0


# Headings are compared in lower case, with everything but letters and digits removed, without their unit.
HEADINGS: dict[str, LoggedFigure] = {
    # nvidia-smi --query-gpu
    "utilizationgpu": LoggedFigure("gpu_percent"),
    "utilizationmemory": LoggedFigure("memory_controller_percent"),
    "memoryused": LoggedFigure("memory_used_mib"),
    "memorytotal": LoggedFigure("memory_total_mib"),
    "powerdraw": LoggedFigure("power_w"),
    "powerdrawaverage": LoggedFigure("power_w"),
    "powerdrawinstant": LoggedFigure("power_w"),
    # nvidia-smi dmon: rates in MB/s, memory in MB of 2^20
    "sm": LoggedFigure("gpu_percent"),
    "mem": LoggedFigure("memory_controller_percent"),
    "fb": LoggedFigure("memory_used_mib"),
    "rxpci": LoggedFigure("pcie_rx_mb_s"),
    "txpci": LoggedFigure("pcie_tx_mb_s"),
    "pwr": LoggedFigure("power_w"),
    # amd-smi monitor and metric, rocm-smi
    "gfx": LoggedFigure("gpu_percent"),
    "gfxutil": LoggedFigure("gpu_percent"),
    "gfxactivity": LoggedFigure("gpu_percent"),
    "umcactivity": LoggedFigure("memory_controller_percent"),
    "vramused": LoggedFigure("memory_used_mib"),
    "usedvram": LoggedFigure("memory_used_mib"),
    "vramtotal": LoggedFigure("memory_total_mib"),
    "totalvram": LoggedFigure("memory_total_mib"),
    "vrampercent": LoggedFigure("memory_used_percent"),
    "powerusage": LoggedFigure("power_w"),
    "socketpower": LoggedFigure("power_w"),
    "pciebw": LoggedFigure("pcie_both_mb_s", 0.125),
    "gpuuse": LoggedFigure("gpu_percent"),
    "gpumemoryuse": LoggedFigure("memory_controller_percent"),
    "gpumemoryallocated": LoggedFigure("memory_used_percent"),
    "averagegraphicspackagepower": LoggedFigure("power_w"),
    "currentsocketgraphicspackagepower": LoggedFigure("power_w"),
    # DCGM field names and the short headings of dcgmi dmon; profiling rates are bytes/s, device counters KB/s
    "dcgmfidevgpuutil": LoggedFigure("gpu_percent"),
    "gputl": LoggedFigure("gpu_percent"),
    "dcgmfiprofgrengineactive": LoggedFigure("gpu_percent", 100.0),
    "gract": LoggedFigure("gpu_percent", 100.0),
    "dcgmfidevmemcopyutil": LoggedFigure("memory_controller_percent"),
    "mcutl": LoggedFigure("memory_controller_percent"),
    "dcgmfiprofdramactive": LoggedFigure("memory_controller_percent", 100.0),
    "drama": LoggedFigure("memory_controller_percent", 100.0),
    "dcgmfidevfbused": LoggedFigure("memory_used_mib"),
    "fbusd": LoggedFigure("memory_used_mib"),
    "dcgmfidevfbtotal": LoggedFigure("memory_total_mib"),
    "fbttl": LoggedFigure("memory_total_mib"),
    "dcgmfiprofpcierxbytes": LoggedFigure("pcie_rx_mb_s", 1e-6),
    "dcgmfiprofpcietxbytes": LoggedFigure("pcie_tx_mb_s", 1e-6),
    "pcirx": LoggedFigure("pcie_rx_mb_s", 1e-6),
    "pcitx": LoggedFigure("pcie_tx_mb_s", 1e-6),
    "dcgmfidevpcierxthroughput": LoggedFigure("pcie_rx_mb_s", 1e-3),
    "dcgmfidevpcietxthroughput": LoggedFigure("pcie_tx_mb_s", 1e-3),
    "dcgmfidevpowerusage": LoggedFigure("power_w"),
    "power": LoggedFigure("power_w"),
}
GPU_HEADINGS = ("index", "gpu", "gpuid", "gpuindex", "idx", "device", "entity", "card", "uuid", "gpuuuid", "pcibusid")
UNIT = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Utilisation:
    """A log in averages.

    Attributes:
        source: the file.
        gpus: one row per GPU in order of id: gpu (text), samples, and the ``FIGURES`` the log has (None where not).
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


def gpu_rows(logs: Mapping[str, Utilisation]) -> list[GpuUtilisation]:
    """Return the averages of logs, by name, one entry per GPU."""
    return [row for name, one in logs.items() for row in rows_of(GpuUtilisation, one.gpus, log=name, source=one.source)]


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
    """Read one line by the heading; None for repeated headings, lines of units and broken lines."""
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
    number = NUMBER.match(cell.strip())
    return None if number is None else as_number(number.group())


def _unit_factor(heading: str, cell: str) -> float:
    """Bring memory that a log states in GiB or bytes to MiB; other units are those of the heading table."""
    text = f"{heading} {cell}".lower()
    if not ("mem" in text or "vram" in text or "fb" in text):
        return 1.0
    if re.search(r"\bgi?b\b", text):
        return 1024.0
    return 1 / (1 << 20) if re.search(r"\((b|bytes)\)|\[(b|bytes)\]", text) else 1.0


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
