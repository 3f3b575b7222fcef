"""What the benchmark is told, and how its inputs and limits work."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from bench.answers import Answer
from bench.inputs import period, replicate
from bench.loading import Loading
from bench.loading_options import Rule, choose, options_from
from bench.measure import Limits, Measurement, measure
from bench.results import load, save


def test_the_last_rule_that_fits_counts() -> None:
    rules = [Rule.of("2000=3"), Rule.of("hta,2000=1"), Rule.of("python,2000=0")]
    assert choose(rules, 5, "kernels", "json", "500") == 5
    assert choose(rules, 5, "kernels", "json", "2000") == 3
    assert choose(rules, 5, "kernels", "hta", "2000") == 1
    assert choose(rules, 5, "python", "hta", "2000") == 0
    assert choose([Rule.of("60")], 5, "hta") == 60


@pytest.mark.parametrize("text", ["hta=", "nobody=3", "x"])
def test_a_rule_that_cannot_be_understood_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        Rule.of(text)


def test_a_run_beyond_its_time_is_stopped_with_its_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    found = measure([sys.executable, "-c", code], dict(os.environ), Limits(seconds=0.3))
    assert found.stopped == "stopped after 0.3 s"
    assert found.wall_s < 30


def test_a_run_beyond_its_memory_is_stopped() -> None:
    code = "import time; held = bytearray(300_000_000); time.sleep(60)"
    found = measure([sys.executable, "-c", code], dict(os.environ), Limits(memory_mb=150))
    assert found.stopped == "stopped above 150 MB"


def test_time_of_children_and_memory_of_all_are_counted() -> None:
    child = "held = bytearray(80_000_000); [i * i for i in range(2_000_000)]; print('done')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    found = measure([sys.executable, "-c", code], dict(os.environ))
    assert found.output.strip() == "done"
    assert found.cpu_s > 0.02
    assert found.peak_mb > 80


def test_copies_are_shifted_and_nearest_to_the_size(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10.5, "dur": 2.25}
    events = [{**event, "args": {"correlation": i, "stream": 7}} for i in (3, 4)]
    path = tmp_path / "long.json.gz"
    size = replicate({"schemaVersion": 1, "traceEvents": events}, 1000, path, period(events))
    raw = gzip.decompress(path.read_bytes())
    found = json.loads(raw)["traceEvents"]
    assert len(raw) == size
    assert abs(size - 1000) < 300
    assert [one["args"]["correlation"] for one in found[:4]] == [3, 4, 17, 18]
    assert [one["ts"] for one in found[:4]] == [10.5, 10.5, 100_010.5, 100_010.5]
    assert found[2]["dur"] == 2.25


def test_a_resumed_benchmark_keeps_the_other_inputs(tmp_path: Path) -> None:
    inputs = [{"kind": "kernels", "size_mb": size, "raw_mb": size} for size in (5, 500)]
    rows = [{"kind": "kernels", "size_mb": size, "route": "json", "runs": [{"wall_s": size}]} for size in (5, 500)]
    save("loading", {"inputs": inputs, "rows": rows}, settings={"repeats": 7}, folder=tmp_path)
    told = ["--traces", str(tmp_path), "--results", str(tmp_path), "--sizes", "5", "--kinds", "kernels"]
    assert Loading(options_from(told), tmp_path).rows == []
    bench = Loading(options_from([*told, "--resume"]), tmp_path)
    assert [row.size_mb for row in bench.rows] == [500]
    bench.save()
    document = load("loading", tmp_path)
    assert document is not None
    assert document["results"]["inputs"] == inputs[1:]
    assert document["settings"]["resumed"]["repeats"] == 7


def test_an_interrupted_benchmark_keeps_the_rounds_it_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels-5.json.gz").write_bytes(b"")
    (tmp_path / "kernels-5.json.bytes").write_text("5000000")
    told = ["--traces", str(tmp_path), "--results", str(tmp_path), "--sizes", "5", "--kinds", "kernels"]
    bench = Loading(options_from([*told, "--routes", "json", "traceanalyzer", "--warmups", "0"]), tmp_path)
    runs = 0

    def once(route: str, _: object) -> Measurement:
        nonlocal runs
        runs += 1
        if runs == 6:
            raise KeyboardInterrupt
        return Measurement(1.0, 1.0, 10.0, 0, Answer(3, 4, {"kernel": 4}).to_json())

    monkeypatch.setattr(bench, "_once", once)
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    document = load("loading", tmp_path)
    assert document is not None
    assert [(row["route"], len(row["runs"]), row["answer"]) for row in document["results"]["rows"]] == [
        ("json", 2, "equal"),
        ("traceanalyzer", 2, "equal"),
    ]
    assert [one["device_events"] for one in document["results"]["inputs"]] == [3]
