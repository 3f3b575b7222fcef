"""Utilisation logs of nvidia-smi, amd-smi, rocm-smi and DCGM, averaged per GPU."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
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
"""What is averaged. MB is 10^6 bytes; ``pcie_both`` where a tool reports the sum of both directions."""

# Figure and factor to its unit -> headings in lower case, only letters and digits, without their unit. They are those
# of nvidia-smi --query-gpu; nvidia-smi dmon (rates in MB/s, memory in MiB); amd-smi monitor and metric; rocm-smi; the
# field names of DCGM and the short ones of dcgmi dmon (profiling rates in bytes/s, device counters in KB/s).
SPELLINGS = {
    ("gpu_percent", 1.0): "utilizationgpu sm gfx gfxutil gfxactivity gpuuse dcgmfidevgpuutil gputl",
    ("gpu_percent", 100.0): "dcgmfiprofgrengineactive gract",
    ("memory_controller_percent", 1.0): "utilizationmemory mem umcactivity gpumemoryuse dcgmfidevmemcopyutil mcutl",
    ("memory_controller_percent", 100.0): "dcgmfiprofdramactive drama",
    ("memory_used_mib", 1.0): "memoryused fb vramused usedvram dcgmfidevfbused fbusd",
    ("memory_total_mib", 1.0): "memorytotal vramtotal totalvram dcgmfidevfbtotal fbttl",
    ("memory_used_percent", 1.0): "vrampercent gpumemoryallocated",
    ("pcie_rx_mb_s", 1.0): "rxpci",
    ("pcie_rx_mb_s", 1e-3): "dcgmfidevpcierxthroughput",
    ("pcie_rx_mb_s", 1e-6): "dcgmfiprofpcierxbytes pcirx",
    ("pcie_tx_mb_s", 1.0): "txpci",
    ("pcie_tx_mb_s", 1e-3): "dcgmfidevpcietxthroughput",
    ("pcie_tx_mb_s", 1e-6): "dcgmfiprofpcietxbytes pcitx",
    ("pcie_both_mb_s", 0.125): "pciebw",
    (
        "power_w",
        1.0,
    ): "powerdraw powerdrawaverage powerdrawinstant pwr powerusage socketpower power dcgmfidevpowerusage "
    "averagegraphicspackagepower currentsocketgraphicspackagepower",
}
HEADINGS = {heading: meaning for meaning, headings in SPELLINGS.items() for heading in headings.split()}
GPU_HEADINGS = ("index", "gpu", "gpuid", "gpuindex", "idx", "device", "entity", "card", "uuid", "gpuuuid", "pcibusid")
UNIT = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def read_utilisation(path: str, log: str) -> list[GpuUtilisation]:
    """Return the averages of a log, named ``log``, over all its samples, one per GPU in order of id.

    Raises:
        TraceError: the file cannot be read, or has no known column.
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
    return rows_of(GpuUtilisation, _averages(samples), log=log, source=path)


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
    """Return the figures of a line; None for repeated headings, lines of units and broken lines."""
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
            figure, factor = meaning
            figures.setdefault(figure, value * factor * _unit_factor(name, cell))
    if not figures:
        return None
    return {"gpu": gpu or "all", **figures}


def _number(cell: str) -> float | None:
    number = NUMBER.match(cell.strip())
    return None if number is None else as_number(number.group())


def _unit_factor(heading: str, cell: str) -> float:
    """Return the factor to MiB of memory stated in GiB or bytes; other units are those of the headings."""
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
