"""Time by kernel name on every recorded trace, against a count that shares no code with the product."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
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


COPIES = {f"aten::{name}" for name in ("copy_", "fill_", "zero_", "cat", "arange", "repeat", "repeat_interleave")}
NEVER = re.compile(
    r"aten::(empty|view|as_strided|slice|narrow|select|detach|alias|expand|t|reshape|permute|transpose|unsqueeze|squeeze"
    r"|flatten|split|chunk|unbind|movedim|contiguous|clone|to|_to_copy|item|_local_scalar_dense|result_type|lift_fresh"
    r"|resolve_conj|resolve_neg|zeros|resize|new_empty|_unsafe_view|_reshape_alias|_has_compatible_shallow_copy_type"
    r"|as_strided|unfold)(_like|_strided|_with_sizes|_as|_)?|[^:]*"
)
"""Views, allocations, dispatch, and names without a namespace, which are labels."""


def compute_operators(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CPU ops that compute and contain none that does; copies outside of these that contain no other copy."""
    threads: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        if event.get("cat") == "cpu_op" and nanoseconds(event["dur"]) > 0:
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    counted = []
    for ops in threads.values():
        ops.sort(key=lambda op: (nanoseconds(op["ts"]), -nanoseconds(op["dur"])))
        for _, chosen, _ in walk(ops, 0, len(ops)):
            counted += chosen
    return counted


def walk(ops: list[dict[str, Any]], at: int, end: int) -> Iterator[tuple[bool, list[dict[str, Any]], bool]]:
    """Yield for each outermost op whether it computes, what of it counts, and whether it moves anything."""
    while at < end:
        op, behind = ops[at], at + 1
        until = nanoseconds(op["ts"]) + nanoseconds(op["dur"])
        while behind < end and nanoseconds(ops[behind]["ts"]) < until:
            behind += 1
        inner = list(walk(ops, at + 1, behind))
        chosen = [one for _, some, _ in inner for one in some]
        copies = op["name"] in COPIES
        computes = not copies and NEVER.fullmatch(op["name"]) is None
        inside = any(each[0] for each in inner)
        if (computes and not inside) or (copies and not inside and not any(each[2] for each in inner)):
            chosen = [op]
        yield computes or inside, chosen, copies or any(each[2] for each in inner)
        at = behind


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
        kernels = kernels or compute_operators(events)
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
