"""Which operations of a CPU stand for kernels: each moment counted once, by the innermost operation that computes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import TRACES
from traceanalyzer.read.compute_ops import COMPUTES, DISPATCHES, MOVES, work_of

Op = tuple[Any, ...]
"""Name, start and end in µs, and what it calls."""


def events(*ops: Op, thread: int = 1) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, start, end, *called in ops:
        row = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": thread, "ts": start, "dur": end - start}
        rows += [row, *events(*called, thread=thread)]
    return rows


def counted(tmp_path: Path, *rows: dict[str, Any]) -> list[tuple[str, float]]:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    ops = ta.open_trace(path).device_events
    return [(name, ns / 1000) for name, ns in zip(ops["name"].cast(str), ops["dur_ns"], strict=True)]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (("_C::onednn_mm", 1, 9, ("aten::item", 2, 4, ("aten::_local_scalar_dense", 2, 3))), [("_C::onednn_mm", 8)]),
        (
            ("aten::linear", 1, 9, ("aten::t", 1, 2), ("aten::addmm", 3, 8, ("aten::copy_", 4, 5))),
            [("aten::addmm", 5)],
        ),
        (("aten::to", 1, 9, ("aten::_to_copy", 2, 8, ("aten::copy_", 3, 5))), [("aten::copy_", 2)]),
        (("aten::add", 1, 9, ("aten::to", 2, 8, ("aten::copy_", 3, 5))), [("aten::add", 8)]),
        (("aten::zeros", 1, 9, ("aten::empty", 1, 2), ("aten::zero_", 3, 8, ("aten::fill_", 4, 6))), [
            ("aten::fill_", 2)]),
        (("aten::mean", 1, 9, ("aten::sum", 2, 4, ("aten::fill_", 2, 3)), ("aten::div_", 5, 8)), [
            ("aten::sum", 2), ("aten::div_", 3)]),
        (("aten::layer_norm", 1, 9, ("aten::native_layer_norm", 2, 8, ("aten::view", 3, 4))), [
            ("aten::native_layer_norm", 6)]),
        (("AddmmBackward0", 1, 9, ("aten::mm", 2, 4), ("aten::t", 5, 6)), [("aten::mm", 2)]),
        (("aten::view", 1, 9), []),
        (("aten::empty", 1, 9), []),
        (("aten::item", 1, 9), []),
        (("Pregraph bytecode", 1, 9), []),
        (("ProfilerStep#3", 1, 9, ("aten::relu", 2, 4)), [("aten::relu", 2)]),
    ],
)  # fmt: skip
def test_time_belongs_to_the_innermost_op_that_computes(
    tmp_path: Path, op: Op, expected: list[tuple[str, float]]
) -> None:
    assert counted(tmp_path, *events(op)) == expected


def test_a_copy_beside_a_product_counts_and_one_within_it_does_not(tmp_path: Path) -> None:
    product = ("aten::mm", 3, 6, ("aten::copy_", 4, 5))
    ops = events(("aten::matmul", 1, 9, ("aten::copy_", 1, 2), product, ("aten::copy_", 7, 8)))
    assert counted(tmp_path, *ops) == [("aten::copy_", 1), ("aten::mm", 3), ("aten::copy_", 1)]


def test_threads_are_apart(tmp_path: Path) -> None:
    ops = [*events(("aten::mm", 1, 9)), *events(("aten::mul", 2, 8), thread=2)]
    assert counted(tmp_path, *ops) == [("aten::mm", 8), ("aten::mul", 6)]


def test_what_counts_never_overlaps(tmp_path: Path) -> None:
    """Also where operations of a thread overlap without enclosing each other, as clocks make them."""
    draw = random.Random(4)
    names = ("aten::mm", "aten::copy_", "aten::to", "aten::mul", "aten::view", "engine::op")
    ops = []
    for _ in range(2000):
        start = draw.randrange(5000)
        ops.append((draw.choice(names), start, start + draw.randrange(1, 60)))
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events(*ops)}))
    kept = ta.open_trace(path).device_events.sort("start_ns")
    ends = (kept["start_ns"] + kept["dur_ns"]).to_list()
    assert all(end <= start for end, start in zip(ends, kept["start_ns"].to_list()[1:], strict=False))


@pytest.mark.parametrize(
    ("name", "work"),
    [
        *(("aten::addmm", COMPUTES), ("_C::weight_packed_linear", COMPUTES), ("mylib::FusedThing", COMPUTES)),
        *(("aten::add.Tensor", COMPUTES), ("graph_0_cpp_fused_add_0", COMPUTES), ("vllm::all_reduce", COMPUTES)),
        *(("aten::copy_", MOVES), ("aten::cat", MOVES), ("aten::repeat", MOVES)),
        *(("aten::clone", DISPATCHES), ("aten::expand", DISPATCHES), ("aten::detach", DISPATCHES)),
        *(("autograd::engine::evaluate_function: MmBackward0", DISPATCHES), ("Torch-Compiled Region: 0/0", DISPATCHES)),
        *(("Optimizer.step#AdamW.step", DISPATCHES), ("DistributedDataParallel.forward", DISPATCHES)),
    ],
)
def test_a_name_says_what_an_op_does(name: str, work: str) -> None:
    assert work_of(name) == work


def test_every_product_of_a_machine_without_amx_is_there() -> None:
    """24 layers of four products and the lm_head, in five steps."""
    trace = ta.open_trace(TRACES / "qwen3_24_vllm_eager_onednn.json.gz")
    rows = ta.hotspots(trace).rows
    ((count, total),) = rows.filter(name="_C::onednn_mm").select("count", "total_ns").iter_rows()
    assert count == (24 * 4 + 1) * 5
    assert total / 1e6 == pytest.approx(21.34, abs=0.01)
    assert ta.timelines(trace)[0].steps["blocks"].to_list() == [24] * 5
