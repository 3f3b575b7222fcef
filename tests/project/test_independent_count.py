"""Time by kernel name on every recorded trace, against a count that shares no code with the product."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import ROOT, SHARED, TRACES

OF_OTHERS = [path for folder in ("gpu", "others") for path in sorted((SHARED / "traces" / folder).glob("*.json.gz"))]
OWN = [*sorted(TRACES.rglob("*.json.gz")), *sorted((ROOT / "traces").glob("*.json.gz"))]
WHOLE = [path for path in (*OWN, *OF_OTHERS) if "capture" not in path.name]


def nanoseconds(value: Any) -> int:
    return int((Decimal(str(value)) * 1000).to_integral_value())


def events_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def leaf_operators(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CPU ops in which no other op of their thread starts."""
    threads: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        if event.get("cat") == "cpu_op":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    leaves = []
    for ops in threads.values():
        ops.sort(key=lambda op: (nanoseconds(op["ts"]), -nanoseconds(op["dur"])))
        for op, following in zip(ops, [*ops[1:], None], strict=True):
            end = nanoseconds(op["ts"]) + nanoseconds(op["dur"])
            if following is None or nanoseconds(following["ts"]) >= end:
                leaves.append(op)
    return leaves


NAMES_MIXED_UP = ("dsr1_sglang_decode_mi300.json.gz",)
"""Recordings in which the profiler gave the names of a graph launch to other kernels' times."""


def in_order_of_start(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the k-th name of a launch in the file the duration of the k-th to start."""
    launches: dict[Any, list[dict[str, Any]]] = {}
    for kernel in kernels:
        launches.setdefault(kernel["args"]["correlation"], []).append(kernel)
    return [
        {**kernel, "dur": timed["dur"]}
        for launch in launches.values()
        for kernel, timed in zip(launch, sorted(launch, key=lambda each: nanoseconds(each["ts"])), strict=True)
    ]


def category(event: dict[str, Any]) -> str:
    return str(event.get("cat")).lower()


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.name)
def test_hotspots_equal_an_independent_count(path: Path) -> None:
    events = events_of(path)
    kernels = [event for event in events if category(event) == "kernel"]
    on_device = [event for event in events if category(event).endswith(("runtime", "ccp_events"))]
    if not any("launch" in event["name"].lower() or "mtia" in category(event) for event in on_device):
        kernels = kernels or leaf_operators(events)
    if path.name in NAMES_MIXED_UP:
        kernels = in_order_of_start(kernels)
    count, total = Counter[str](), Counter[str]()
    for kernel in kernels:
        if nanoseconds(kernel["dur"]) > 0:
            count[kernel["name"]] += 1
            total[kernel["name"]] += nanoseconds(kernel["dur"])
    rows = ta.hotspots(ta.open_traces(path, cache=False).traces[0]).rows
    found = {row["name"]: (row["count"], row["total_ns"]) for row in rows.iter_rows(named=True)}
    assert found == {name: (count[name], total[name]) for name in count}
