"""The Perfetto export: the trace as it was, and tracks in which what is part of something lies within it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
CATEGORY = "traceanalyzer"
TRACES = (
    "000_baseline.json",
    "009_gzip_named_json.json",
    "102_begin_end.json.gz",
    "109_cpu_only.json",
    "113_two_gpus.json.gz",
    "115_overlapping_streams.json",
    "201_vllm_native.json.gz",
    "210_dense_first3_moe.json.gz",
    "214_aborted_last_step.json.gz",
    "017_nasty_names.json",
    "001_truncated_midevent.json",
)


def load(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return document


def exported(run: Run, trace: Path, target: Path) -> dict[str, Any]:
    result = run("export", "perfetto", trace, "-o", target)
    assert result.exit_code == 0, result.output
    return load(target)


def tracks(document: dict[str, Any]) -> dict[tuple[int, str], list[tuple[int, int, dict[str, Any]]]]:
    """Slices of ours by (process, name of the track without lane): start and end in ns."""
    ours = [event for event in document["traceEvents"] if event.get("cat") == CATEGORY and event["ph"] == "X"]
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in document["traceEvents"]
        if event.get("name") == "thread_name" and event["pid"] in {one["pid"] for one in ours}
    }
    found: dict[tuple[int, str], list[tuple[int, int, dict[str, Any]]]] = {}
    for event in ours:
        start = round(event["ts"] * 1000)
        kind = names[event["pid"], event["tid"]].split(" (")[0]
        found.setdefault((event["pid"], kind), []).append((start, start + round(event["dur"] * 1000), event))
    return found


@pytest.mark.parametrize("name", TRACES)
def test_roles_lie_in_blocks_and_blocks_in_steps(run: Run, cases: Path, tmp_path: Path, name: str) -> None:
    document = exported(run, cases / name, tmp_path / "out.json")
    found = tracks(document)
    pids = {pid for pid, _ in found}
    assert pids
    for pid in pids:
        steps = {int(e["name"].split("step ")[1].split()[0]): (a, b) for a, b, e in found[pid, "steps"]}
        blocks = {}
        for start, end, event in found.get((pid, "blocks"), []):
            step = steps[event["args"]["step"]]
            assert step[0] <= start < end <= step[1]
            blocks[event["args"]["step"], int(event["name"].split()[1])] = (start, end)
        for start, end, event in found.get((pid, "roles"), []):
            block = event["args"]["block"]
            step_number = event["args"]["step"]
            around = steps[step_number] if block is None else blocks[step_number, block]
            assert around[0] <= start < end <= around[1]


@pytest.mark.parametrize("name", TRACES)
def test_slices_of_a_track_are_in_order_and_do_not_overlap(run: Run, cases: Path, tmp_path: Path, name: str) -> None:
    document = exported(run, cases / name, tmp_path / "out.json")
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in document["traceEvents"]:
        if event.get("cat") == CATEGORY and event["ph"] == "X":
            start = round(event["ts"] * 1000)
            lanes.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1000)))
    assert lanes
    for slices in lanes.values():
        assert all(former[1] <= later[0] for former, later in pairwise(slices))


def test_the_events_of_the_trace_stay_as_they_are(run: Run, cases: Path, tmp_path: Path) -> None:
    before = load(cases / "000_baseline.json")
    after = exported(run, cases / "000_baseline.json", tmp_path / "out.json.gz")
    count = len(before["traceEvents"])
    assert after["traceEvents"][:count] == before["traceEvents"]
    assert {key: value for key, value in after.items() if key != "traceEvents"} == {
        key: value for key, value in before.items() if key != "traceEvents"
    }
    taken = {event["pid"] for event in before["traceEvents"]}
    assert all(event["pid"] not in taken for event in after["traceEvents"][count:])


@pytest.mark.parametrize("name", ["000_baseline.json", "201_vllm_native.json.gz", "113_two_gpus.json.gz"])
def test_read_again_it_gives_the_same_figures(run: Run, cases: Path, tmp_path: Path, name: str) -> None:
    exported(run, cases / name, tmp_path / "out.json")
    documents = [
        json.loads(run("ingest", path, "--json").stdout)["timelines"] for path in (cases / name, tmp_path / "out.json")
    ]
    assert documents[0] == documents[1]


def test_a_store_can_be_exported_too(run: Run, cases: Path, tmp_path: Path) -> None:
    assert run("ingest", cases / "201_vllm_native.json.gz", "--output", tmp_path / "store").exit_code == 0
    (cases_copy := tmp_path / "gone").mkdir()
    store = next(path for path in (tmp_path / "store").rglob("trace.json")).parent
    result = run("export", "perfetto", store, "-o", tmp_path / "out.json.gz")
    assert result.exit_code == 0, result.output
    again = json.loads(run("ingest", tmp_path / "out.json.gz", "--json").stdout)["timelines"]
    first = json.loads(run("ingest", cases / "201_vllm_native.json.gz", "--json").stdout)["timelines"]
    for key in ("kernels", "kernel_sum_us", "busy_us", "steps"):
        assert again[0][key] == first[0][key]
    assert list(cases_copy.iterdir()) == []


def test_a_member_of_an_archive_can_be_exported(run: Run, cases: Path, tmp_path: Path) -> None:
    result = run("export", "perfetto", cases / "011_archive.zip", "-o", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert "ingested columns" in result.output
    assert tracks(load(tmp_path / "out.json"))


def test_times_keep_their_nanoseconds(run: Run, tmp_path: Path, cases: Path) -> None:
    document = load(cases / "000_baseline.json")
    for event in document["traceEvents"]:
        if "ts" in event and event["ph"] == "X":
            event["ts"] += 1_767_225_600_000_000.0  # a clock that counts from 1970, in µs
    moved = tmp_path / "moved.json"
    moved.write_text(json.dumps(document))
    exported(run, moved, tmp_path / "out.json")
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    ours = [line for line in text.splitlines() if '"cat":"traceanalyzer"' in line]
    assert ours
    assert all('"ts":17672256' in line and "e+" not in line for line in ours)


def test_the_copy_cannot_replace_its_source(run: Run, cases: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_bytes((cases / "000_baseline.json").read_bytes())
    before = own.read_bytes()
    assert run("export", "perfetto", own, "-o", own).exit_code == 2
    assert own.read_bytes() == before


def test_trace_processor_reads_it(run: Run, cases: Path, tmp_path: Path) -> None:
    processor = pytest.importorskip("perfetto.trace_processor", reason="the perfetto package is not installed")
    exported(run, cases / "201_vllm_native.json.gz", tmp_path / "out.json")
    try:
        opened = processor.TraceProcessor(trace=str(tmp_path / "out.json"))
    except Exception as error:
        pytest.skip(f"trace_processor cannot run here: {error}")
    rows = opened.query("select count(*) as n from slice where name glob '*step*' and category = 'traceanalyzer'")
    assert next(iter(rows)).n == 5
    opened.close()
