"""Damaged files: every complete event is kept, and a warning says what was lost and where."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stores import codes, kernels, warning
from traceanalyzer.problems import TraceError
from traceanalyzer.read import Store

ReadOne = Callable[..., Store]
KERNEL = '"name": "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"'


@pytest.mark.parametrize("cut", [1_500, 5_000, 9_999, 22_222, 28_000])
def test_a_cut_off_file_keeps_the_events_before_the_cut(cut: int, text: str, read_one: ReadOne) -> None:
    store = read_one(text[:cut])
    lines = text[:cut].split('"traceEvents": [\n')[1].split("\n")
    complete = sum(line.endswith("},") for line in lines)
    assert store.metadata.source.events == store.metadata.source.recovered_events == complete
    found = warning(store, "truncated")
    assert found.count == complete
    assert found.line == text[:cut].count("\n") + 1
    assert text[:cut].rfind("\n{") == found.byte_offset - 1


def test_a_cut_at_a_border_is_seen(text: str, read_one: ReadOne) -> None:
    store = read_one(text[: text.index("\n],\n")])
    assert store.metadata.source.events == 89
    assert codes(store) == ["truncated"]


def test_a_cut_after_the_events_loses_metadata_only(text: str, read_one: ReadOne) -> None:
    store = read_one(text[: text.index('"traceName"') + 5])
    assert kernels(store).height == 68
    assert codes(store) == ["truncated_tail"]
    assert store.metadata.source.recovered_events is None


@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "nan",
        "-nan(ind)",
        "Infinity",
        "-inf",
        "1.#INF",
        "1e999",
        '"NaN"',
        '"-Infinity"',
        "null",
        "true",
        "[]",
        '""',
        "-5",
    ],
)
def test_a_kernel_without_usable_time_is_left_out(value: str, text: str, read_one: ReadOne) -> None:
    for key, number in (("dur", "14.2"), ("ts", "1032.3")):
        store = read_one(text.replace(f'"{key}": {number}', f'"{key}": {value}', 1))
        assert kernels(store)["dur_ns"].sum() == 945_000 - 14_200
        found = warning(store, "invalid_gpu_times")
        assert (found.count, found.line) == (1, 19)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ('"name": "nv"je"t\\q"', 'nv"je"t\\q'),
        ('"name": "nv\x01\n\tjet"', "nv\x01\n\tjet"),
        ('"name": "nv\\ud800jet"', "nv\ufffdjet"),
        ('"name": "nvé\udcff"', "nvé\ufffd"),
    ],
)
def test_names_that_are_not_json_are_mended(name: str, kept: str, text: str, read_one: ReadOne) -> None:
    store = read_one(text.replace(KERNEL, name, 1).encode("utf-8", "surrogateescape"))
    assert kernels(store)["name"].cast(str)[2] == kept
    assert kernels(store)["dur_ns"].sum() == 945_000
    found = warning(store, "repaired_events")
    assert (found.count, found.line) == (1, 19)


def test_what_is_beyond_repair_is_counted_and_the_rest_kept(text: str, read_one: ReadOne) -> None:
    store = read_one(text.replace(KERNEL, KERNEL[:-1], 1).replace('"dur": 41.6', '"dur" 41.6', 1))
    assert kernels(store).height == 66
    assert store.metadata.source.recovered_events == 87
    found = warning(store, "unreadable_events")
    assert (found.count, found.line) == (2, 19)


def test_bytes_that_are_not_utf_8_anywhere_in_an_event_cost_at_most_that_value(text: str, read_one: ReadOne) -> None:
    for old in ('"dur": 14.2', '"ts": 1032.3', '"grid": [128, 1, 1]', '"correlation": 101', '"External id": 1'):
        for new in (old.replace('": ', '": "\udcff", "x": '), old.replace('"', '"\udcff', 1)):
            content = text.replace(old, new, 1).replace('"ts": 1575.0', '"ts": 8796093022209')
            store = read_one(content.encode("utf-8", "surrogateescape"))
            assert store.metadata.source.events == 89
            assert kernels(store).height >= 67


@pytest.mark.parametrize(("old", "new"), [("}},\n{", "}}\n{"), ("}},\n{", "}},,\n{"), ("\n],", ",\n],")])
def test_missing_and_doubled_commas_between_events_cost_nothing(
    old: str, new: str, text: str, read_one: ReadOne
) -> None:
    store = read_one(text.replace(old, new))
    assert kernels(store)["dur_ns"].sum() == 945_000


def test_a_hole_of_zero_bytes_costs_what_it_covers(text: str, read_one: ReadOne) -> None:
    store = read_one(text[:9_000].encode() + bytes(4096) + text[9_300:].encode())
    assert store.metadata.source.events == 88
    assert warning(store, "unreadable_events").count == 1


def test_args_of_an_unexpected_type_do_not_cost_the_event(text: str, read_one: ReadOne) -> None:
    store = read_one(text.replace('"args": {"External id": 1, "device": 0', '"args": [], "x": {"a": 1, "b": 0', 3))
    assert kernels(store)["dur_ns"].sum() == 945_000
    assert kernels(store)["correlation"].null_count() == 3


def test_deep_nesting_is_bounded(text: str, read_one: ReadOne) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    store = read_one(text.replace('"graph node id": 3}', f'"x": {deep}}}', 1).replace("{\n", f'{{"m": {deep},', 1))
    assert kernels(store).height == 67
    assert codes(store) == ["unreadable_events", "unreadable_value"]


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n  ", b"INFO {x} recording\n", bytes(7)])
def test_what_precedes_the_json_is_skipped(before: bytes, text: str, read_one: ReadOne) -> None:
    store = read_one(before + text.encode())
    assert kernels(store).height == 68
    assert store.metadata.rank == 0


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
def test_utf_16_is_read(codec: str, text: str, read_one: ReadOne) -> None:
    head = b"\xfe\xff" if codec == "utf-16-be" else b""
    assert kernels(read_one(head + text.encode(codec))).height == 68


@pytest.mark.parametrize("after", ["{}", "\x00" * 999, "x", "]}", '{"traceEvents": [{"ph": "X"}]}'])
def test_what_follows_the_document_is_not_counted(after: str, text: str, read_one: ReadOne) -> None:
    store = read_one(text + after)
    assert store.metadata.source.events == 89
    assert warning(store, "trailing_data").byte_offset == len(text)


def test_events_without_a_list_are_read(document: Any, read_one: ReadOne) -> None:
    store = read_one("\n".join(json.dumps(event) for event in document["traceEvents"]))
    assert kernels(store).height == 68
    assert codes(store) == ["no_list"]


def test_a_list_without_its_end_is_read(document: Any, read_one: ReadOne) -> None:
    """The format allows a list of events to end without its bracket."""
    store = read_one("[\n" + ",\n".join(json.dumps(event) for event in document["traceEvents"]) + ",\n")
    assert kernels(store).height == 68
    assert codes(store) == ["truncated"]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_cut_off_gzip_gives_all_that_can_be_decompressed(share: float, text: str, read_one: ReadOne) -> None:
    import zlib

    packed = gzip.compress(text.encode())
    packed = packed[: int(len(packed) * share)]
    expected = zlib.decompressobj(31).decompress(packed).decode()
    store = read_one(packed)
    assert store.metadata.source.events == expected.count("}},\n")
    assert {"damaged_compression", "truncated"} <= set(codes(store))


def test_the_events_before_a_flipped_bit_are_kept(text: str, read_one: ReadOne) -> None:
    packed = bytearray(gzip.compress(text.encode()))
    packed[-200] ^= 0xFF
    store = read_one(bytes(packed))
    assert store.metadata.source.events > 60
    assert "damaged_compression" in codes(store)


def test_a_wrong_checksum_loses_nothing(text: str, read_one: ReadOne) -> None:
    packed = bytearray(gzip.compress(text.encode()))
    packed[-6] ^= 1
    store = read_one(bytes(packed))
    assert kernels(store).height == 68
    assert codes(store) == ["damaged_compression"]


def test_a_damaged_member_of_a_gzip_does_not_cost_the_next(text: str, read_one: ReadOne) -> None:
    head, tail = text[:9_000].encode(), text[9_000:].encode()
    first = bytearray(gzip.compress(head))
    first[-30] ^= 0xFF
    store = read_one(bytes(first) + gzip.compress(tail))
    assert store.metadata.source.events > 55
    assert "damaged_compression" in codes(store)


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda b: gzip.compress(gzip.compress(b)),
        lambda b: gzip.compress(b[:999]) + gzip.compress(b[999:]),
        lambda b: gzip.compress(b) + bytes(999),
        bz2.compress,
        lambda b: bz2.compress(b[:999]) + bz2.compress(b[999:]),
        lzma.compress,
        lambda b: lzma.compress(gzip.compress(b)),
    ],
    ids=["gzip", "gzip twice", "two members", "padded", "bzip2", "two bzip2 streams", "xz", "gzip in xz"],
)
def test_compression_is_told_by_content_not_by_name(
    pack: Callable[[bytes], bytes], text: str, read_one: ReadOne
) -> None:
    store = read_one(pack(text.encode()), "rank0.json")
    assert kernels(store)["dur_ns"].sum() == 945_000
    assert codes(store) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{}", "no events"),
        (b"[]", "no events"),
        (b'{"traceEvents": []}', "no events"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel"', "incomplete"),
        (b'{"traceEv', "incomplete"),
        (b'{"model_type": "llama"}', "not a profiler trace"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\x80\x04\x95", "pickle"),
        (b"hello", "not a JSON trace"),
        (bytes(1000), "zero bytes"),
        (gzip.compress(b"{}", mtime=0)[:8], "incomplete"),
        (b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(content: bytes, reason: str, read_one: ReadOne) -> None:
    with pytest.raises(TraceError, match=reason) as caught:
        read_one(content)
    assert "\n" not in str(caught.value)
