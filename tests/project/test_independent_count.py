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


def parameter(path: Path) -> Any:
    """A trace as a parameter; one whose kernels lack device and stream is not read yet."""
    lacking = path.name == "kineto_resnet.json.gz"
    reason = "kernels whose args lack device and stream are not read as kernels yet"
    return pytest.param(path, id=path.name, marks=pytest.mark.xfail(lacking, reason=reason, strict=True))


@pytest.mark.parametrize("path", [parameter(path) for path in WHOLE])
def test_hotspots_equal_an_independent_count(path: Path) -> None:
    events = events_of(path)
    kernels = [e for e in events if e.get("cat") == "kernel"] or leaf_operators(events)
    count, total = Counter[str](), Counter[str]()
    for kernel in kernels:
        if nanoseconds(kernel["dur"]) > 0:
            count[kernel["name"]] += 1
            total[kernel["name"]] += nanoseconds(kernel["dur"])
    rows = ta.hotspots(ta.open_traces(path, cache=False).traces[0]).rows
    found = {row["name"]: (row["count"], row["total_ns"]) for row in rows.iter_rows(named=True)}
    assert found == {name: (count[name], total[name]) for name in count}
