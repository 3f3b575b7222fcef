"""Graph launches whose names were joined with other kernels' times: re-paired, doubted, or left alone."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from synthetic import generate, write
from synthetic.random_specs import random_model
from tests.support.places import REPORTS, SHARED
from traceanalyzer.commands.hotspots.advice import advice
from traceanalyzer.commands.tune.plan.compute import plan
from traceanalyzer.roofline import roofline
from traceanalyzer.segment import segment

BLOCK = (("norm", 4.4), ("qkv", 18.8), ("rope", 5.0), ("attn", 43.5), ("reduce", 4.4), ("o", 16.5), ("norm", 4.4),
         ("gate_up", 73.0), ("silu", 9.7), ("down", 35.9))  # fmt: skip
RIGHT, SHUFFLED = (REPORTS / "traces" / f"rocm_graph_names_{kind}.json.gz" for kind in ("right", "shuffled"))


def kernels(blocks: int = 24, seed: int = 1) -> list[tuple[str, float, float]]:
    """Name, start and duration of a launch's kernels in the order of the program, with the noise of a recording."""
    noise, at, rows = random.Random(seed), 0.0, []
    for name, typical in BLOCK * blocks:
        dur = typical * noise.uniform(0.95, 1.05)
        rows.append((name, at, dur))
        at += dur + 1.0
    return rows


def opened(tmp_path: Path, rows: list[tuple[str, float, float]], *, rocm: bool = True) -> ta.Trace:
    """Write rows in this order as one graph launch, and open it."""
    document: dict[str, Any] = {"roctracer_version": 4.1} if rocm else {}
    document["traceEvents"] = [
        {
            **{"ph": "X", "cat": "kernel", "pid": 0, "tid": 3, "name": name, "ts": 1000 + start, "dur": dur},
            "args": {"device": 0, "stream": 3, "correlation": 7, "grid": [place, 1, 1]},
        }
        for place, (name, start, dur) in enumerate(rows)
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    return ta.open_trace(path)


def mixed_up(rows: list[tuple[str, float, float]], order: list[int]) -> list[tuple[str, float, float]]:
    """The names in the order of the program, each with the times of another kernel."""
    return [(name, *rows[other][1:]) for (name, _, _), other in zip(rows, order, strict=True)]


def runs(length: int, count: int, seed: int = 2) -> list[int]:
    """Positions as several ascending runs, one after the other, as records arrive that were taken from queues."""
    draw = random.Random(seed)
    queue = [draw.randrange(count) for _ in range(length)]
    return sorted(range(length), key=lambda at: (queue[at], at))


def codes(trace: ta.Trace) -> set[str]:
    return {warning.code for warning in trace.metadata.warnings} & {"repaired_names", "doubtful_names"}


def totals(trace: ta.Trace) -> dict[str, int]:
    return dict(ta.hotspots(trace).rows.select("name", "total_ns").iter_rows())


def test_the_reported_launch_gets_its_shares_back_and_says_so() -> None:
    right, shuffled = ta.open_trace(RIGHT), ta.open_trace(SHUFFLED)
    assert totals(shuffled) == totals(right)
    assert (codes(right), codes(shuffled)) == (set(), {"repaired_names"})
    (warning,) = (w for w in shuffled.metadata.warnings if w.code == "repaired_names")
    assert warning.count == 352
    assert "re-paired" in warning.message
    assert segment(shuffled).steps["blocks"].to_list() == [32]


@pytest.mark.parametrize("count", [2, 3, 6])
def test_several_interleaved_runs_are_re_paired(tmp_path: Path, count: int) -> None:
    rows = kernels()
    trace = opened(tmp_path, mixed_up(rows, runs(len(rows), count)))
    assert codes(trace) == {"repaired_names"}
    expected = {name: sum(round(dur * 1000) for other, _, dur in rows if other == name) for name, _ in BLOCK}
    assert totals(trace) == pytest.approx(expected, abs=len(rows))
    assert trace.device_events["start_ns"].is_sorted()


def test_what_belongs_to_a_name_moves_with_it(tmp_path: Path) -> None:
    rows = kernels()
    events = opened(tmp_path, mixed_up(rows, runs(len(rows), 3))).device_events
    assert events["grid"].cast(str).to_list() == [f"[{place}, 1, 1]" for place in range(len(rows))]
    assert events["name"].cast(str).to_list() == [name for name, _, _ in rows]


@pytest.mark.parametrize("rocm", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_a_sound_launch_in_any_order_of_the_file_is_left_alone(tmp_path: Path, seed: int, *, rocm: bool) -> None:
    rows = kernels()
    random.Random(seed).shuffle(rows)
    trace = opened(tmp_path, rows, rocm=rocm)
    assert codes(trace) == set()


def test_kernels_that_swap_places_are_left_alone(tmp_path: Path) -> None:
    rows = kernels()
    rows[40:42] = rows[41], rows[40]
    assert codes(opened(tmp_path, rows)) == set()


def test_a_shift_that_leaves_either_pairing_sound_is_doubted_on_rocm_only(tmp_path: Path) -> None:
    rows = kernels()
    shifted = mixed_up(rows, [*range(3, len(rows)), 0, 1, 2])
    assert codes(opened(tmp_path, shifted)) == {"doubtful_names"}
    assert codes(opened(tmp_path, shifted, rocm=False)) == set()


def test_a_launch_that_a_tool_sorted_afterwards_is_doubted(tmp_path: Path) -> None:
    """The order of the program is lost with the order of the file: durations repeat, names do not."""
    rows = kernels()
    mixed = sorted(mixed_up(rows, runs(len(rows), 3)), key=lambda row: row[1])
    assert codes(opened(tmp_path, mixed)) == {"doubtful_names"}


def test_a_launch_of_one_name_is_sound(tmp_path: Path) -> None:
    """Equal names say nothing of durations, and need not."""
    assert codes(opened(tmp_path, [("gemm", start, dur) for _, start, dur in kernels()])) == set()


@pytest.mark.parametrize("seed", [32, 45, 137, 185, 236])
def test_generated_launches_of_several_streams_are_sound(tmp_path: Path, seed: int) -> None:
    """Their kernels stand in the file stream by stream; few of them repeat."""
    path = write(generate(random_model(random.Random(seed)), seed=seed), tmp_path / "trace.json")
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "roctracer_version": 4.1}))
    assert codes(ta.open_trace(path)) == set()


def test_nothing_is_advised_by_name_where_names_are_in_doubt(tmp_path: Path) -> None:
    rows = kernels()
    trace = opened(tmp_path, mixed_up(rows, [*range(3, len(rows)), 0, 1, 2]))
    assert trace.names_doubtful
    (target,) = advice(trace)
    assert target.message.startswith("No recommendation:")
    (finding,) = roofline(trace).findings
    assert finding.message.startswith("No recommendation:")
    nothing = plan(trace)
    assert nothing.target is None
    assert nothing.reason is not None
    assert "out of order" in nothing.reason


OTHERS = [path for kind in ("gpu", "others") for path in sorted((SHARED / "traces" / kind).glob("*.json.gz"))]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_of_the_recordings_only_the_known_one_is_touched(path: Path) -> None:
    (trace,) = ta.open_traces(path, cache=False).traces
    expected = {"repaired_names"} if path.name == "dsr1_sglang_decode_mi300.json.gz" else set()
    assert codes(trace) == expected
    if not expected:
        return
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    launch = [e for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] == 57209]
    times = sorted((e["ts"], e["dur"]) for e in launch)
    gate_up = sum(dur for e, (_, dur) in zip(launch, times, strict=True) if "MT32x16x512" in e["name"])
    own = {name: ns for name, ns in totals(trace).items() if "MT32x16x512" in name}
    assert sum(own.values()) == pytest.approx(gate_up * 1000)
