"""Reading a trace runs no Python for each event and holds no copy of the document, however long it is.

The limits lie between what ingest needs and what the least loop or copy would (``BAD_LOADERS``): they are for noticing
such a change, not for measuring speed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.counted_work import lines_run, peak_bytes
from tests.support.doubled_traces import Pair, Recorded
from traceanalyzer.read import decode, ingest
from traceanalyzer.read import streaming as reading

Loader = Callable[[Path], object]

MOST_LINES_PER_EVENT = 0.2
"""One line of Python in a loop over events is 1, in one over the device's events 0.2 in these recordings; what is run
for each window and each new name comes to 0.09."""

MOST_HELD_PER_BYTE = 0.2
"""One copy of the text is 1, the document as Python objects several."""


def load(path: Path) -> object:
    """Read a trace in this process."""
    return ingest([str(path)], cache=False, processes=0)


def assert_no_work_per_event(loader: Loader, pair: Pair) -> None:
    assert pair.per_event(lambda each: lines_run(lambda: loader(each.path))) < MOST_LINES_PER_EVENT


def assert_no_copy_of_the_document(loader: Loader, pair: Pair) -> None:
    assert pair.per_byte(lambda each: peak_bytes(lambda: loader(each.path))) < MOST_HELD_PER_BYTE


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make windows as small to these traces as the usual ones are to a trace of 100 MB."""
    monkeypatch.setattr(reading, "WINDOW_BYTES", 1 << 16)
    monkeypatch.setattr(decode, "CHUNK_BYTES", 1 << 14)


def test_more_events_run_no_more_python(pair: Pair) -> None:
    assert_no_work_per_event(load, pair)


@pytest.mark.usefixtures("small_windows")
def test_a_longer_document_holds_no_more_memory(pair: Pair) -> None:
    assert_no_copy_of_the_document(load, pair)


@pytest.mark.usefixtures("small_windows")
def test_a_fraction_of_what_a_json_library_holds_is_held(pair: Pair) -> None:
    document = peak_bytes(lambda: json.loads(pair.long.path.read_bytes()))
    assert peak_bytes(lambda: load(pair.long.path)) < document / 3


def test_the_store_grows_no_faster_than_the_events(pair: Pair, tmp_path: Path) -> None:
    def stored(each: Recorded) -> int:
        folder = tmp_path / each.path.stem
        ingest([str(each.path)], output=folder, cache=False, processes=0)
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

    assert pair.per_byte(stored) < 0.1
    assert stored(pair.short) < 0.3 * pair.short.raw_bytes


def _in_a_loop(path: Path) -> object:
    total = 0.0
    for event in json.loads(path.read_bytes())["traceEvents"]:
        total += event.get("dur", 0)
    return total


def _in_a_comprehension(path: Path) -> object:
    return [event.get("name") for event in json.loads(path.read_bytes())["traceEvents"]]


def _by_a_function(path: Path) -> object:
    return list(map(lambda event: event.get("name"), json.loads(path.read_bytes())["traceEvents"]))  # noqa: C417


def _text_at_once(path: Path) -> object:
    text = path.read_bytes()
    return text, load(path)


def _objects_at_once(path: Path) -> object:
    return json.loads(path.read_bytes())


BAD_LOADERS: dict[str, tuple[Loader, Callable[[Loader, Pair], None]]] = {
    "a loop over events": (_in_a_loop, assert_no_work_per_event),
    "a comprehension over events": (_in_a_comprehension, assert_no_work_per_event),
    "a function called for each event": (_by_a_function, assert_no_work_per_event),
    "the whole text": (_text_at_once, assert_no_copy_of_the_document),
    "the whole document as objects": (_objects_at_once, assert_no_copy_of_the_document),
}


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("what", [name for name in BAD_LOADERS if "whole" in name])
def test_a_loader_that_holds_the_document_is_noticed(what: str, pair: Pair) -> None:
    loader, check = BAD_LOADERS[what]
    with pytest.raises(AssertionError):
        check(loader, pair)


@pytest.mark.parametrize("what", [name for name in BAD_LOADERS if "whole" not in name])
def test_a_loader_that_runs_python_for_each_event_is_noticed(what: str, pair: Pair) -> None:
    loader, check = BAD_LOADERS[what]
    with pytest.raises(AssertionError):
        check(loader, pair)
