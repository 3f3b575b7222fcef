"""The table of GPUs as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.hardware import Gpu, Roofs, roofs
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural, visible

SCHEMA = "traceanalyzer/gpus/1"
WIDE = 90
"""Terminal width from which on target and link have columns."""

CONFIDENCE = {
    "A": "vendor figures, or two sources that agree",
    "B": "one second-hand source",
    "C": "derived, or a single weak source",
    "user": "described by the user",
}


def document(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Return the JSON document of ``gpus``; peaks are dense."""
    return {"schema": SCHEMA, "gpus": [_entry(gpu) for gpu in gpus]}


def _entry(gpu: Gpu) -> dict[str, Any]:
    every = [roofs(gpu, dtype) for dtype in gpu.peak_tflops]
    return {
        **asdict(gpu),
        "device_names": list(gpu.device_names),
        "achievable_tflops": {one.dtype: round(one.achievable_tflops, 1) for one in every},
        "achievable_gbps": every[0].achievable_gbps if every else None,
        "achievable_basis": list(every[0].notes) if every else [],
    }


def render(gpus: Sequence[Gpu], width: int) -> Group:
    """Return the list as text."""
    columns = {
        "GPU": [gpu.name for gpu in gpus],
        "target": [gpu.target or "" for gpu in gpus],
        "GB": [_rounded(gpu.memory_gb) for gpu in gpus],
        "GB/s": [_rounded(gpu.bandwidth_gbps) for gpu in gpus],
        "16 bit": [_rounded(gpu.peak_tflops.get("bf16", gpu.peak_tflops.get("fp16"))) for gpu in gpus],
        "fp8": [_rounded(gpu.peak_tflops.get("fp8")) for gpu in gpus],
        "fp4": [_rounded(gpu.peak_tflops.get("fp4")) for gpu in gpus],
        "link": [_rounded(gpu.link_gbps) for gpu in gpus],
        "conf.": [gpu.confidence for gpu in gpus],
    }
    if width < WIDE:
        del columns["target"], columns["link"]
    link = "link: GB/s of a GPU's links, one direction. " if "link" in columns else ""
    told = ", ".join(
        f"{grade}: {CONFIDENCE[grade]}" for grade in CONFIDENCE if any(g.confidence == grade for g in gpus)
    )
    return Group(
        Text(f"{plural(len(gpus), 'GPU')}; peaks are dense, in 10^12 operations a second", style="bold"),
        Text(),
        table(tuple(columns), zip(*columns.values(), strict=True), name_column=None, width=width),
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
        ("confidence", f"{gpu.confidence}: {CONFIDENCE.get(gpu.confidence, 'unknown')}"),
        ("source", gpu.source),
        *([("note", gpu.note)] if gpu.note else []),
    ]
    every = [roofs(gpu, dtype) for dtype in gpu.peak_tflops]
    notes = list(dict.fromkeys(note for one in every for note in one.notes))
    shown = Table.grid(padding=(0, 2))
    for key, value in facts:
        shown.add_row(Text(f"  {key}"), Text(visible(value), overflow="fold"))
    parts: list[Any] = [Text(visible(gpu.name), style="bold"), shown, Text(), _roofs_table(gpu, every)]
    return Group(*parts, *(Text(f"  {visible(note)}") for note in notes))


def _roofs_table(gpu: Gpu, every: Sequence[Roofs]) -> Table:
    rows = [("memory", f"{gpu.bandwidth_gbps:,.0f} GB/s", f"{every[0].achievable_gbps:,.0f} GB/s", "")] if every else []
    rows += [
        (one.dtype, f"{one.peak_tflops:,.1f} T/s", f"{one.achievable_tflops:,.0f} T/s", f"{one.ridge:,.0f} FLOP/B")
        for one in every
    ]
    return table(("roof", "peak", "achievable", "ridge"), rows, name_column=None, width=100)


def _caches(gpu: Gpu) -> str:
    last = f", {gpu.last_level_cache_mb:g} MB behind it" if gpu.last_level_cache_mb else ""
    return f"L2 {_figure(gpu.l2_mb)} MB{last}"


def _link(gpu: Gpu) -> str:
    return f"{gpu.link or 'unknown'} {_figure(gpu.link_gbps)}".strip()


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")
