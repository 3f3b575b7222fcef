"""The analyses that are timed, as library calls: ``python -m bench.calls NAME PATH... `` prints {"call_s": seconds}.

Imports are outside of the time, opening the trace from its store is inside.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

MODEL, GPU = "gpt-oss-20b", "MI300X"
"""What the trace was recorded with, for the calls that are told it."""


def ingest(path: str) -> Any:
    """Open, and make the overview: steps, blocks, busy share."""
    from traceanalyzer.commands.ingest.compute import timelines
    from traceanalyzer.trace import open_traces

    return [timelines(trace) for trace in open_traces(path)]


def blocks(path: str) -> Any:
    """Find the transformer blocks of every step."""
    from traceanalyzer.segment import segment

    return segment(_open(path)).blocks


def hotspots(path: str) -> Any:
    """Rank kernels by time."""
    from traceanalyzer.commands.hotspots.compute import hotspots as rank

    return rank(_open(path)).rows


def headroom(path: str) -> Any:
    """Rank kernels by headroom: the ranking by time and the roofline's bounds."""
    from traceanalyzer.commands.hotspots.compute import hotspots as rank
    from traceanalyzer.commands.hotspots.headroom import by_headroom
    from traceanalyzer.hardware import find_gpu
    from traceanalyzer.model import load
    from traceanalyzer.roofline import Request, roofline
    from traceanalyzer.roofline.bounds import bounds_by

    trace = _open(path)
    found = rank(trace)
    request = Request(model=load(MODEL), gpu=find_gpu(GPU), phase=found.phase, every_phase=True)
    return by_headroom(found, bounds_by(roofline(trace, request), "kernel")).rows


def roofline(path: str) -> Any:
    """Hold every kind of work against its roof; model and GPU recognised."""
    from traceanalyzer.roofline import Request
    from traceanalyzer.roofline import roofline as analyse

    return analyse(_open(path), Request()).rows


def idle(path: str) -> Any:
    """Find the gaps between and inside steps."""
    from traceanalyzer.commands.idle.compute import idle as gaps

    return gaps(_open(path))


def diff(before: str, after: str) -> Any:
    """Compare two traces role by role."""
    from traceanalyzer.commands.diff.compute import diff as compare

    return compare(_open(before), _open(after))


def ranks(path: str) -> Any:
    """Compare the ranks of a job."""
    from traceanalyzer.commands.ranks.compute import compare
    from traceanalyzer.trace import open_traces

    return compare(open_traces(path))


def report(path: str) -> Any:
    """Make the HTML page."""
    from traceanalyzer.commands.report.gather import PageData, gather_trace
    from traceanalyzer.commands.report.page import render

    return render(PageData(trace=gather_trace(_open(path))))


def _open(path: str) -> Any:
    from traceanalyzer.trace import open_trace

    return open_trace(path)


CALLS: dict[str, Callable[..., Any]] = {
    "ingest": ingest,
    "blocks": blocks,
    "hotspots": hotspots,
    "headroom": headroom,
    "roofline": roofline,
    "idle": idle,
    "diff": diff,
    "ranks": ranks,
    "report": report,
}

MODULES = (
    "analysis.hotspots",
    "analysis.roofline.bounds",
    "analysis.summary",
    "analysis.idle",
    "analysis.diff",
    "ranks",
    "report.html",
    "segment",
    "hardware",
    "model",
)


if __name__ == "__main__":
    for module in MODULES:
        import_module(f"traceanalyzer.{module}")
    began = time.perf_counter()
    CALLS[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({"call_s": time.perf_counter() - began}))  # noqa: T201
