"""Text of events -> frames: cutting into chunks, dictionaries, columns left out."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.support.stores import codes, kernels
from traceanalyzer.read import Store, decode, dictionary
from traceanalyzer.read.decode import Decoded, EventWords, decode_text
from traceanalyzer.read.event_schema import EVENT_SCHEMA


def events_text(document: Any) -> bytes:
    return json.dumps(document["traceEvents"], indent=1)[1:-1].encode()


def kernel(number: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10.0 * number, "dur": 5.0, "args": args}


def written(*events: dict[str, Any]) -> str:
    return json.dumps({"traceEvents": list(events)})


def assert_same(one: Decoded, other: Decoded) -> None:
    assert (one.events, one.process_names, one.oversize) == (other.events, other.process_names, other.oversize)
    assert one.frames.keys() == other.frames.keys()
    for group, frame in one.frames.items():
        assert_frame_equal(frame, other.frames[group])


@pytest.mark.parametrize("chunk_bytes", [1, 700, 5_000])
def test_chunks_give_what_the_whole_gives(chunk_bytes: int, document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    document["traceEvents"][9]["args"]["Collective name"] = "allreduce"
    document["traceEvents"][20]["args"]["correlation"] = 2**70
    text = events_text(document)
    whole = decode_text(text, EventWords(), exact=False)
    monkeypatch.setattr(decode, "CHUNK_BYTES", chunk_bytes)
    assert_same(decode_text(text, EventWords(), exact=False), whole)


def test_a_chunk_cut_through_an_event_is_read_with_the_rest(document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for event in document["traceEvents"][5:30]:
        event.setdefault("args", {})["inner"] = [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}]
    text = events_text(document)
    whole = decode_text(text, EventWords(), exact=False)
    monkeypatch.setattr(decode, "CHUNK_BYTES", 100)
    assert_same(decode_text(text, EventWords(), exact=False), whole)


def test_a_dictionary_that_starts_anew_between_windows_changes_nothing(
    document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, words = events_text(document), EventWords()
    first = decode_text(text, words, exact=False)
    monkeypatch.setattr(dictionary, "LIMIT", 3)
    again = decode_text(text[: len(text) // 2].rsplit(b"},\n {", 1)[0] + b"}", words, exact=False)
    assert_same(decode_text(text, words, exact=False), first)
    assert 0 < again.events < first.events


def test_columns_that_no_event_has_are_null(read_one: Any) -> None:
    store: Store = read_one(written(kernel(1, correlation=5), kernel(2)))
    (file,) = store.files("device")
    assert "grid" not in pl.read_parquet_schema(file)
    frame = store.scan().collect()
    assert frame.schema == EVENT_SCHEMA
    assert frame["grid"].null_count() == 2
    assert frame["correlation"].to_list() == [5, None]


def test_both_spellings_of_an_arg_may_occur_in_one_file(read_one: Any) -> None:
    rows = kernels(read_one(written(kernel(1, Correlation=1), kernel(2, correlation=2), kernel(3))))
    assert rows["correlation"].to_list() == [1, 2, None]


def test_text_args_may_hold_escaped_zero_characters(read_one: Any) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "o", "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.0}
    values = ["\0", "a\0b"]
    store = read_one(written(op | {"args": {"Concrete Inputs": values}}, kernel(1)))
    assert json.loads(store.scan(["cpu_op"]).collect()["concrete_inputs"][0]) == values


def test_a_raw_zero_byte_among_text_args_shifts_no_row(read_one: Any) -> None:
    text = written(kernel(1, grid=["?"], block=[1]), kernel(2, grid=[2], block=[2])).replace("?", "\0")
    rows = kernels(read_one(text))
    assert rows["thread_block"].to_list() == ["[1]", "[2]"]
    assert rows["grid"][1] == "[2]"


def test_an_arg_that_is_null_is_a_missing_one(read_one: Any) -> None:
    rows = kernels(
        read_one(
            written(
                kernel(1, grid=None, **{"registers per thread": None, "Collective name": None}), kernel(2, grid=[3])
            )
        )
    )
    assert rows["grid"].to_list() == [None, "[3]"]
    assert rows["registers"].null_count() == rows["extra"].null_count() == 2


def test_a_truth_value_is_no_process(read_one: Any) -> None:
    store = read_one(written(kernel(1) | {"pid": 1}, kernel(2) | {"pid": True}))
    assert kernels(store)["pid"].to_list() == ["1", None]
    assert "repaired_events" in codes(store)


def test_args_of_events_that_are_not_kept_may_be_anything(read_one: Any) -> None:
    flow = {
        "ph": "s",
        "cat": "ac2g",
        "name": "ac2g",
        "pid": 0,
        "tid": 7,
        "ts": 1.0,
        "id": 1,
        "args": [1, {"stream": []}],
    }
    store = read_one(written(flow, kernel(1)))
    assert (kernels(store).height, codes(store)) == (1, [])
