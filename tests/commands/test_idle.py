from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from synthetic import Hole, generate
from synthetic.models import llama_decode
from traceanalyzer.commands.idle.compute import _totals, idle
from traceanalyzer.commands.idle.host import _thread_time
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces


def test_busy_and_idle_add_up_to_the_span(open_spec) -> None:
    trace, _ = open_spec(replace(llama_decode(layers=4, steps=3), gap_us=1.5))
    totals = idle(trace).totals.row(0, named=True)
    events = trace.device_events
    end = (events["start_ns"] + events["dur_ns"]).max()
    assert totals["span_ns"] == end - events["start_ns"].min()
    assert totals["busy_ns"] + totals["idle_ns"] == totals["span_ns"]
    assert idle(trace).gaps["dur_ns"].sum() == totals["idle_ns"]


def test_a_hole_in_a_graph_is_found_and_not_blamed_on_the_host(open_spec) -> None:
    spec = replace(llama_decode(layers=4, steps=2), holes=(Hole(step=1, block=2, kernel=3, dur_us=300.0),))
    trace, _ = open_spec(spec)
    longest = idle(trace).gaps.filter(pl.col("place") == "inside step").row(0, named=True)
    assert longest["dur_ns"] >= 300_000
    assert (longest["step"], longest["block"], longest["cause"]) == (1, 2, "device")


def test_a_graph_launch_without_kernels_is_unknown_never_idle(tmp_path) -> None:
    document = generate(llama_decode(layers=4, steps=3)).document
    launches = [e["args"]["correlation"] for e in document["traceEvents"] if "GraphLaunch" in e.get("name", "")]
    lost = launches[1]
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("cat") != "kernel" or e["args"]["correlation"] != lost
    ]
    path = tmp_path / "lost.json"
    path.write_text(json.dumps(document))
    found = idle(open_traces(path, cache=False).traces[0])
    assert [warning.code for warning in found.warnings] == ["kernels_not_recorded"]
    assert found.totals["idle_ns"].to_list() == [None]


def test_a_device_without_complete_steps_has_none_and_not_an_unknown_number(open_spec) -> None:
    trace, _ = open_spec(llama_decode(layers=2, steps=2))
    cut = segment(trace)
    assert _totals(cut.events, cut.steps)["steps"].to_list() == [2]
    assert _totals(cut.events, cut.steps.with_columns(complete=False))["steps"].to_list() == [0]


@pytest.mark.parametrize("order", [1, -1], ids=["as they started", "last one first"])
def test_late_launches_are_blamed_on_the_host_and_its_work_is_named(tmp_path, order) -> None:
    def event(cat, name, ts, dur, **args):
        tid = 7 if cat == "kernel" else 1
        return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        event("user_annotation", "execute_context_0(0)_generation_1(1)", 0.0, 100.0),
        event("cuda_runtime", "cudaLaunchKernel", 1.0, 2.0, correlation=1),
        event("kernel", "first", 5.0, 10.0, correlation=1, device=0, stream=7),
        event("cpu_op", "aten::outer", 10.0, 40.0),
        event("cpu_op", "aten::inner", 20.0, 10.0),
        event("cuda_runtime", "cudaLaunchKernel", 45.0, 2.0, correlation=2),
        event("kernel", "second", 50.0, 10.0, correlation=2, device=0, stream=7),
    ]
    path = tmp_path / "late.json"
    path.write_text(json.dumps({"traceEvents": events[::order]}))
    found = idle(open_traces(path, cache=False).traces[0])
    (gap,) = found.gaps.iter_rows(named=True)
    assert (gap["dur_ns"], gap["cause"], gap["host_ns"]) == (35_000, "host", 30_000)
    host = {row["name"]: row["total_ns"] for row in found.host.iter_rows(named=True)}
    assert host == {"aten::outer": 20_000, "aten::inner": 10_000}
    assert set(found.host["inside"]) == {"execute_context_0(0)_generation_1(1)"}


def test_a_cpu_trace_has_unknown_idle_time(samples) -> None:
    trace = open_traces(samples / "gptoss24_vllm_cpu.json.gz", cache=False).traces[0]
    found = idle(trace)
    assert found.totals.is_empty()
    assert [warning.code for warning in found.warnings] == ["idle_unknown"]


@pytest.mark.parametrize(
    ("starts", "ends", "wanted"),
    [
        ([0, 2], [10, 4], [(0, 2, 0), (2, 4, 1), (4, 10, 0)]),
        ([0, 5], [5, 9], [(0, 5, 0), (5, 9, 1)]),
        ([0, 0], [10, 10], [(0, 10, 1)]),
        ([0, 8], [10, 12], [(0, 8, 0), (8, 10, 1)]),
        ([], [], []),
    ],
)
def test_the_innermost_event_gets_each_moment(starts, ends, wanted) -> None:
    number = {"start_ns": pl.Int64, "dur_ns": pl.Int64}
    events = pl.DataFrame({"start_ns": starts, "dur_ns": [e - s for s, e in zip(starts, ends, strict=True)]}, number)
    names = [str(event) for event in range(len(starts))]
    events = events.with_columns(name=pl.Series(names, dtype=pl.String), cat=pl.lit("cpu_op"))
    moments = [str(moment) for moment in range(15)]
    waits = pl.DataFrame({"start_ns": range(15), "host_ns": [1] * 15, "place": moments})
    rows = _thread_time(events, waits).filter(pl.col("total_ns") > 0)
    found = {(int(place), name) for place, name in rows.select("place", "name").iter_rows()}
    running = {(moment, str(event)) for start, end, event in wanted for moment in range(start, end)}
    idle_moments = set(range(15)) - {moment for moment, _ in running}
    assert rows["total_ns"].to_list() == [1] * 15
    assert found == running | {(moment, None) for moment in idle_moments}
