"""The table of GPUs as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.gpus.result import GpuEntry, GpusDocument
from traceanalyzer.declare import part_of
from traceanalyzer.hardware import Gpu, Roofs, roofs
from traceanalyzer.hardware.gpus import CONFIDENCE
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural, visible

WIDE = 90
"""Terminal width from which on the columns of WIDE_ONLY are shown."""
WIDE_ONLY = frozenset({"target", "link"})
COLUMNS: dict[str, Callable[[Gpu], str]] = {
    "GPU": lambda gpu: gpu.name,
    "target": lambda gpu: gpu.target or "",
    "GB": lambda gpu: _rounded(gpu.memory_gb),
    "GB/s": lambda gpu: _rounded(gpu.bandwidth_gbps),
    "16 bit": lambda gpu: _rounded(gpu.peak_tflops.get("bf16", gpu.peak_tflops.get("fp16"))),
    "fp8": lambda gpu: _rounded(gpu.peak_tflops.get("fp8")),
    "fp4": lambda gpu: _rounded(gpu.peak_tflops.get("fp4")),
    "link": lambda gpu: _rounded(gpu.link_gbps),
    "conf.": lambda gpu: gpu.confidence,
}
"""Heading -> what the column says of a GPU."""


def document(gpus: Sequence[Gpu]) -> GpusDocument:
    """Return the JSON document of ``gpus``."""
    return GpusDocument(gpus=[_entry(gpu) for gpu in gpus])


def _entry(gpu: Gpu) -> GpuEntry:
    every = [roofs(gpu, dtype) for dtype in gpu.peak_tflops]
    return part_of(
        GpuEntry,
        gpu,
        achievable_tflops={one.dtype: round(one.achievable_tflops, 1) for one in every},
        achievable_gbps=every[0].achievable_gbps if every else None,
        achievable_basis=list(every[0].notes) if every else [],
    )


def render(gpus: Sequence[Gpu], width: int) -> Group:
    """Return the list as text."""
    shown = [heading for heading in COLUMNS if width >= WIDE or heading not in WIDE_ONLY]
    link = "link: GB/s of all links of a GPU, one direction. " if "link" in shown else ""
    grades = {gpu.confidence for gpu in gpus}
    told = ", ".join(f"{grade}: {why}" for grade, why in CONFIDENCE.items() if grade in grades)
    rows = [[COLUMNS[heading](gpu) for heading in shown] for gpu in gpus]
    return Group(
        Text(f"{plural(len(gpus), 'GPU')}; peaks are dense, in 10^12 operations per second", style="bold"),
        Text(),
        table(shown, rows, name_column=None, width=width),
        Text(),
        Text(f"{link}conf., confidence: {told}."),
        Text("`traceanalyzer gpus NAME` shows sources and what is achievable; --gpu-file adds GPUs from a TOML file."),
    )


def render_one(gpu: Gpu) -> Group:
    """Return everything known of one GPU as text."""
    facts = [
        ("made as", " ".join(part for part in (gpu.vendor, gpu.architecture, gpu.target) if part)),
        ("units", _figure(gpu.compute_units) + (f" at {gpu.clock_mhz:g} MHz" if gpu.clock_mhz else "")),
        ("memory", f"{_figure(gpu.memory_gb)} GB"),
        ("cache", _caches(gpu)),
        ("link", _link(gpu) + (" GB/s in one direction" if gpu.link_gbps else "")),
        ("PCIe", gpu.pcie or "unknown"),
        ("reported as", ", ".join(gpu.device_names) or "unknown"),
        ("confidence", f"{gpu.confidence}: {CONFIDENCE[gpu.confidence]}"),
        ("source", gpu.source),
        *([("note", gpu.note)] if gpu.note else []),
    ]
    every = [roofs(gpu, dtype) for dtype in gpu.peak_tflops]
    notes = list(dict.fromkeys(note for one in every for note in one.notes))
    shown = Table.grid(padding=(0, 2))
    for key, value in facts:
        shown.add_row(Text(f"  {key}"), Text(visible(value), overflow="fold"))
    return Group(
        Text(visible(gpu.name), style="bold"),
        shown,
        Text(),
        _roofs_table(gpu, every),
        *(Text(f"  {visible(note)}") for note in notes),
    )


def _roofs_table(gpu: Gpu, every: Sequence[Roofs]) -> Table:
    rows = [("memory", f"{gpu.bandwidth_gbps:,.0f} GB/s", f"{every[0].achievable_gbps:,.0f} GB/s", "")] if every else []
    rows += [
        (one.dtype, f"{one.peak_tflops:,.1f} T/s", f"{one.achievable_tflops:,.0f} T/s", f"{one.ridge:,.0f} FLOP/B")
        for one in every
    ]
    return table(("roof", "peak", "achievable", "ridge"), rows, name_column=None, width=100)


def _caches(gpu: Gpu) -> str:
    last = f", {gpu.last_level_cache_mb:g} MB after it" if gpu.last_level_cache_mb else ""
    return f"L2 {_figure(gpu.l2_mb)} MB{last}"


def _link(gpu: Gpu) -> str:
    return f"{gpu.link or 'unknown'} {_figure(gpu.link_gbps)}".strip()


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")
