"""The generator of the streaming benchmark counts what it writes, and ingest finds the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from traceanalyzer.read import Store

generator = pytest.importorskip("bench.generator", reason="the benchmarks need numpy and psutil")
stream = pytest.importorskip("bench.stream", reason="the benchmarks need numpy and psutil")


def written(document: Any, copies: int) -> tuple[bytes, Any]:
    source = generator.Source(document)
    parts: list[bytes] = []
    truth = generator.write(source, len(source.head) + source.count.text_bytes * copies, parts.append)
    return b"".join(parts), truth


def test_copies_are_valid_json_with_times_and_ids_of_their_own(document: Any) -> None:
    number = len(document["traceEvents"])
    text, truth = written(document, 3)
    events = json.loads(text)["traceEvents"]
    assert (len(text), len(events)) == (truth.text_bytes, truth.events) == (len(text), 3 * number)
    assert values(events, "ts") == 3 * values(document["traceEvents"], "ts")
    assert values(events, "correlation") == 3 * values(document["traceEvents"], "correlation")


def values(events: list[Any], key: str) -> int:
    """Return how many different values kernels have."""
    return len({(event | event["args"])[key] for event in events if event.get("cat") == "kernel"})


def test_what_is_read_is_what_was_written(document: Any, read_one: Callable[..., Store]) -> None:
    text, truth = written(document, 2)
    store = read_one(text)
    counted = json.loads(json.dumps(vars(truth)))
    told = {"text_bytes": store.metadata.text_bytes}
    assert stream.differences(counted, told, store.directory) == []
    counted["gpu_ns"] += 1
    assert len(stream.differences(counted, told, store.directory)) == 1
