"""Mutated traces: the only outcomes are a result, with warnings or without, and a one-line error."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.places import CASES
from traceanalyzer.commands.doctor.compute import write_repaired
from traceanalyzer.problems import TraceError
from traceanalyzer.read import ingest

SEEDS = [
    (gzip.decompress(raw) if (raw := (CASES / name).read_bytes())[:2] == b"\x1f\x8b" else raw)
    for name in ("017_nasty_names.json", "102_begin_end.json.gz", "106_huge_ids.json", "109_cpu_only.json")
]
TOKENS = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"NaN", b"-Infinity", b"1e999", b"null", b"\0", b"\xff", b"\n",
    b'"ph"', b'"traceEvents": [', b"}, {", b"}]", b'"args": []', b'"ts": "x"', b"9" * 40, b"\\ud800", b"\xef\xbb\xbf",
]  # fmt: skip

place = st.floats(0, 1)
edit = st.one_of(
    st.tuples(st.just("cut"), place, st.just(b"")),
    st.tuples(st.just("delete"), place, st.binary(min_size=1, max_size=200)),
    st.tuples(st.just("insert"), place, st.one_of(st.sampled_from(TOKENS), st.binary(max_size=6))),
    st.tuples(st.just("overwrite"), place, st.one_of(st.sampled_from(TOKENS), st.binary(max_size=6))),
)
MUTATED_TEXT = given(st.sampled_from(SEEDS), st.lists(edit, min_size=1, max_size=4))
MUTATED_GZIP = given(st.sampled_from(SEEDS), st.lists(edit, min_size=1, max_size=2))
FEW_BYTES = given(st.sampled_from(SEEDS), place, st.binary(min_size=1, max_size=3))
NOISE = given(st.binary(max_size=300))

FUZZ = settings(max_examples=60)
FRESH = settings(settings.get_profile("fresh"), max_examples=1000)
"""Other traces every time; a failure prints the line that repeats it."""


def mutated(seed: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for kind, share, content in edits:
        at = int(share * len(seed))
        if kind == "cut":
            seed = seed[:at]
        elif kind == "delete":
            seed = seed[:at] + seed[at + len(content) :]
        elif kind == "insert":
            seed = seed[:at] + content + seed[at:]
        else:
            seed = seed[:at] + content + seed[at + len(content) :]
    return seed


def outcome(content: bytes) -> int | None:
    """Return the number of events read, or null for an error; every other outcome fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(content)
        try:
            result = ingest([str(path)], cache=False, processes=0)
        except TraceError as error:
            refused = str(error)
        else:
            refused = None
        if refused is not None:
            assert refused.count("\n") == 0
            return None
        for store in result.stores:
            frame = store.scan().collect()
            assert frame["start_ns"].null_count() == frame["dur_ns"].null_count() == 0
            assert frame["dur_ns"].min() >= 0  # type: ignore[operator]
            assert all(warning.source for warning in store.metadata.warnings)
        copy = Path(folder) / "copy.json"
        write_repaired(str(path), copy)
        json.loads(copy.read_text(), parse_constant=str.strip)
        again = ingest([str(copy)], cache=False, processes=0)
        assert again.sources[0].events == result.sources[0].events
        return result.sources[0].events


def check_few_damaged_bytes(seed: bytes, share: float, content: bytes) -> None:
    """A few bytes among the events cost at most three of them."""
    start = seed.index(b"traceEvents") + 20
    at = start + int(share * (seed.index(b'"traceName"') - 20 - start))
    events = outcome(seed[:at] + content + seed[at + len(content) :])
    assert events is not None
    assert events >= seed.count(b'"ph"') - 3


@FUZZ
@MUTATED_TEXT
def test_mutated_text(seed: bytes, edits: list[tuple[str, float, bytes]]) -> None:
    outcome(mutated(seed, edits))


@FUZZ
@MUTATED_GZIP
def test_mutated_gzip(seed: bytes, edits: list[tuple[str, float, bytes]]) -> None:
    outcome(mutated(gzip.compress(seed), edits))


@FUZZ
@FEW_BYTES
def test_a_few_damaged_bytes_cost_few_events(seed: bytes, share: float, content: bytes) -> None:
    check_few_damaged_bytes(seed, share, content)


@FUZZ
@NOISE
def test_noise(content: bytes) -> None:
    outcome(content)


@pytest.mark.slow
@FRESH
@MUTATED_TEXT
def test_fresh_mutated_text(seed: bytes, edits: list[tuple[str, float, bytes]]) -> None:
    outcome(mutated(seed, edits))


@pytest.mark.slow
@FRESH
@MUTATED_GZIP
def test_fresh_mutated_gzip(seed: bytes, edits: list[tuple[str, float, bytes]]) -> None:
    outcome(mutated(gzip.compress(seed), edits))


@pytest.mark.slow
@FRESH
@FEW_BYTES
def test_fresh_damaged_bytes_cost_few_events(seed: bytes, share: float, content: bytes) -> None:
    check_few_damaged_bytes(seed, share, content)


@pytest.mark.slow
@FRESH
@NOISE
def test_fresh_noise(content: bytes) -> None:
    outcome(content)
