"""Every route gives the same answer, and one that does not is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.answers import Answer, answer_of, differences
from bench.routes import ROUTES

ANSWER = Answer(3, 6_000_000, {"a": 4_000_000, "b": 2_000_000})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Write a trace with all kinds of device events, host events, and what is no device event at all."""

    def event(cat: str, name: str, dur: float, ts: float) -> dict[str, object]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": {"stream": 7}}

    events = [event("kernel", f"kernel_{i % 12}", 1.25 + i % 12, 1000.0 + 100.0 * i) for i in range(60)]
    events += [event("gpu_memcpy", "Memcpy HtoD", 2.5, 7000.0), event("gpu_memset", "Memset (Device)", 1.001, 7100.0)]
    events += [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5.0, "dur": 9.5, "args": {}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 5.0, "dur": 900.0},
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        {"ph": "i", "name": "mark", "s": "g", "pid": 0, "tid": 0, "ts": 1.0},
    ]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
    return path


@pytest.mark.parametrize("route", [name for name in ROUTES if name not in {"json", "hta", "one-process"}])
def test_a_route_answers_as_the_standard_library_does(
    route: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not ROUTES[route].possible:
        pytest.skip(f"{ROUTES[route].needs} is not installed")
    expected = ROUTES["json"].run(str(trace))
    assert (expected.events, len(expected.top)) == (62, 10)
    assert differences(ROUTES[route].run(str(trace)), expected) == []


def test_differences_in_count_total_and_names_are_told() -> None:
    other = Answer(2, 5_000_000, {"a": 4_000_000, "c": 1_000_000})
    found = differences(other, ANSWER)
    assert found == ["2 events instead of 3", "total -1,000.000 µs (-16.67%)", "1 of the 2 largest names missing"]


def test_a_difference_of_rounding_is_none_and_a_larger_one_is() -> None:
    assert differences(Answer(3, 6_000_001, ANSWER.top), ANSWER) == []
    assert differences(Answer(3, 6_000_002, ANSWER.top), ANSWER) != []


def test_an_answer_survives_printing_and_noise_before_it() -> None:
    assert Answer.from_output("a warning\n" + ANSWER.to_json() + "\n") == ANSWER
    assert Answer.from_output("Killed") is None
    assert Answer.from_output("") is None


def test_names_of_equal_time_come_in_one_order() -> None:
    assert list(answer_of({"b": (1.0, 1), "a": (1.0, 1)}).top) == ["a", "b"]
