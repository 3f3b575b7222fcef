"""From a PyTorch Profiler trace of an LLM server to steps, transformer blocks, hotspots and a faster top kernel.

    import traceanalyzer as ta

    trace = ta.open_trace("trace.json.gz")
    ta.hotspots(trace).rows          # kernels by total time
    ta.blocks(trace)                 # one row per transformer block
    ta.steps(trace)                  # one row per step

Frames are Polars frames, times Int64 nanoseconds. Input that cannot be used raises TraceError.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceanalyzer.commands.hotspots.compute import Hotspots, hotspots
    from traceanalyzer.commands.ingest.compute import Timeline, timelines
    from traceanalyzer.commands.source.compute import source
    from traceanalyzer.problems import TraceError, TraceWarning
    from traceanalyzer.segment import Segmentation
    from traceanalyzer.segment.frames import blocks, steps
    from traceanalyzer.trace import Trace, TraceSet, open_trace, open_traces

__version__ = "0.1.0"

__all__ = [
    "Hotspots",
    "Segmentation",
    "Timeline",
    "Trace",
    "TraceError",
    "TraceSet",
    "TraceWarning",
    "__version__",
    "blocks",
    "hotspots",
    "open_trace",
    "open_traces",
    "source",
    "steps",
    "timelines",
]

# Imported on first use, so that `traceanalyzer --help` does not pay for Polars.
_NAMES = {
    "commands.hotspots.compute": ("Hotspots", "hotspots"),
    "commands.ingest.compute": ("Timeline", "timelines"),
    "commands.source.compute": ("source",),
    "problems": ("TraceError", "TraceWarning"),
    "segment": ("Segmentation",),
    "segment.frames": ("blocks", "steps"),
    "trace": ("Trace", "TraceSet", "open_trace", "open_traces"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
