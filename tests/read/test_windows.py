"""The trace is read in windows: where they are cut must not matter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from tests.support.stores import codes
from traceanalyzer.read import Store
from traceanalyzer.read import streaming as reading
from traceanalyzer.read.trace_text import TraceText

ReadOne = Callable[..., Store]


def inner_objects(document: Any) -> str:
    for event in document["traceEvents"]:
        event.setdefault("args", {})["calls"] = [{"name": "a"}, {"name": "b"}, {"c": [{}, {"d": []}]}]
    return json.dumps(document)


def borders_in_names(document: Any) -> str:
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] += ' }, {"ph": "X" }], "x": {[}]'
    return json.dumps(document)


LAYOUTS: dict[str, Callable[[Any], str]] = {
    "one line": json.dumps,
    "compact": lambda document: json.dumps(document, separators=(",", ":")),
    "indented": lambda document: json.dumps(document, indent=2),
    "sorted keys": lambda document: json.dumps(document, sort_keys=True),
    "list root": lambda document: json.dumps(document["traceEvents"]),
    "metadata last": lambda document: json.dumps({"traceEvents": document.pop("traceEvents"), **document, "x": [{}]}),
    "inner objects": inner_objects,
    "inner objects, indented": lambda document: json.dumps(json.loads(inner_objects(document)), indent=1),
    "borders in names": borders_in_names,
}


@pytest.mark.parametrize("size", [700, 2_500, 9_000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_size_of_windows_does_not_matter(
    layout: str, size: int, document: Any, read_one: ReadOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = LAYOUTS[layout](document)
    whole = read_one(content)
    monkeypatch.setattr(reading, "WINDOW_BYTES", size)
    pieces = read_one(content)
    assert len(pieces.window_starts) > 3
    assert_frame_equal(pieces.scan().sort("index").collect(), whole.scan().sort("index").collect())
    assert codes(pieces) == codes(whole) == []
    assert pieces.metadata.source.events == whole.metadata.source.events == len(document.get("traceEvents", "x" * 89))


def test_index_is_the_position_in_the_event_list(
    document: Any, read_one: ReadOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WINDOW_BYTES", 1_000)
    frame = read_one(json.dumps(document)).scan().sort("index").collect()
    expected = [(i, event["name"]) for i, event in enumerate(document["traceEvents"]) if event["ph"] == "X"]
    assert list(zip(frame["index"], frame["name"].cast(str), strict=True)) == expected


def test_events_larger_than_a_window_are_read(
    document: Any, read_one: ReadOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WINDOW_BYTES", 500)
    document["traceEvents"][10]["args"]["note"] = "x" * 50_000
    assert read_one(json.dumps(document)).metadata.source.events == 89


def test_text_after_an_early_end_of_the_list_is_not_read_as_events(text: str) -> None:
    """The end of the list is looked for near the end of the text only, unless asked."""
    garbage = text + text.split('"traceEvents": [')[1]
    document = TraceText([garbage.encode()[i : i + 999] for i in range(0, len(garbage), 999)], 4_000, careful=True)
    assert sum(window.data.count(b'"ph"') for window in document.windows()) == 89
    assert [problem.code for problem in document.problems] == ["trailing_data"]
    assert document.problems[0].byte_offset == len(text) + 1
