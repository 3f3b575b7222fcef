"""Which CPU ops stand for kernels in a trace without a GPU."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from tests.ingest.conftest import CASES
from traceanalyzer.cpu_kernels import standing_for_kernels
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace, open_traces

Call = tuple[str, list["Call"], int]
"""An op: its name, the ops it calls, and the µs it takes besides."""


def op(name: str, own_us: int, *called: Call) -> Call:
    return name, list(called), own_us


def view(name: str = "aten::view") -> Call:
    return op(name, 1, op("aten::as_strided", 1))


def addmm(own_us: int = 60) -> Call:
    """A product with a bias, as PyTorch runs it."""
    return op("aten::addmm", own_us, view("aten::expand"), op("aten::copy_", 3), op("aten::resolve_conj", 1))


def linear(own_us: int = 60) -> Call:
    return op("aten::linear", 4, view("aten::t"), addmm(own_us), op("aten::view", 1))


def layer_norm() -> Call:
    empty = op("aten::empty", 1)
    return op("aten::layer_norm", 2, op("aten::native_layer_norm", 9, empty, empty, op("aten::view", 1)))


def attention() -> Call:
    kernel = op("aten::_scaled_dot_product_flash_attention_for_cpu", 30, view("aten::transpose"), op("aten::empty", 1))
    return op("aten::scaled_dot_product_attention", 3, kernel)


def block() -> list[Call]:
    add = op("aten::add", 4)
    return [
        layer_norm(),
        linear(),
        attention(),
        linear(40),
        add,
        layer_norm(),
        linear(90),
        op("aten::gelu", 12),
        linear(80),
        add,
    ]


def events(calls: list[Call], thread: int = 7) -> list[dict[str, Any]]:
    """Write calls one after the other on a thread."""
    found: list[dict[str, Any]] = []

    def write(call: Call, start: int) -> int:
        name, called, own_us = call
        at = len(found)
        found.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 3, "tid": thread, "ts": start})
        end = start + own_us
        for each in called:
            end += write(each, end - own_us + min(own_us, 1))
        found[at]["dur"] = end - start
        return end - start

    now = 1000
    for call in calls:
        now += write(call, now) + 2
    return found


def opened(tmp_path: Path, calls: list[Call], *more: dict[str, Any]) -> Trace:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [*events(calls), *more]}))
    (trace,) = open_traces(path, cache=False)
    return trace


def names(trace: Trace) -> Counter[str]:
    return Counter(trace.device_events["name"].cast(pl.String).to_list())


def test_ops_that_do_the_work_count_with_what_they_call(tmp_path: Path) -> None:
    trace = opened(tmp_path, [linear(), layer_norm(), attention()])
    assert names(trace) == {
        "aten::as_strided": 1,  # of the transposed weight, which no op that works encloses
        "aten::addmm": 1,
        "aten::view": 1,
        "aten::native_layer_norm": 1,
        "aten::_scaled_dot_product_flash_attention_for_cpu": 1,
    }
    (product,) = trace.device_events.filter(pl.col("name").cast(pl.String) == "aten::addmm")["dur_ns"]
    assert product == (60 + 2 + 3 + 1) * 1000


def test_no_time_counts_twice(tmp_path: Path) -> None:
    found = opened(tmp_path, block() * 3).device_events.sort("start_ns")
    assert (found["start_ns"] + found["dur_ns"] <= found["start_ns"].shift(-1)).all()


def test_leaves_stand_for_kernels_where_they_do_most_of_the_work(tmp_path: Path) -> None:
    """As in a server with operators of its own, in which few others call anything."""
    product, head = op("_C::packed_linear", 200), op("_C::onednn_mm", 90, op("aten::item", 2))
    attention = op("vllm::unified_attention", 400, view("aten::chunk"), op("_C::cpu_attention", 30))
    trace = opened(tmp_path, [product, attention, product, head])
    assert names(trace) == {"_C::packed_linear": 2, "aten::as_strided": 1, "_C::cpu_attention": 1, "aten::item": 1}


def test_an_op_that_calls_one_that_works_is_never_counted(tmp_path: Path) -> None:
    """However much time it has of its own: that is the interpreter's, or waiting."""
    wrapper = op("my::python_op", 900, view(), op("my::kernel", 5))
    found = names(opened(tmp_path, [wrapper, *[linear() for _ in range(9)]]))
    assert found["my::kernel"] == 1
    assert "my::python_op" not in found


def test_copies_that_are_the_work_stay_copies(tmp_path: Path) -> None:
    to = op("aten::to", 1, op("aten::_to_copy", 5, op("aten::empty_strided", 1), op("aten::copy_", 40)))
    found = names(opened(tmp_path, [to, linear()]))
    assert found["aten::copy_"] == 1
    assert not found.keys() & {"aten::to", "aten::_to_copy"}


def test_threads_do_not_enclose_each_other(tmp_path: Path) -> None:
    others = [event | {"tid": 8} for event in events([op("aten::mul", 1)] * 30)]
    found = names(opened(tmp_path, [linear(300)], *others))
    assert found["aten::mul"] == 30
    assert found["aten::addmm"] == 1


def test_ops_without_a_duration_are_no_kernels(tmp_path: Path) -> None:
    found = names(opened(tmp_path, [op("aten::mul", 0), op("aten::add", 5)]))
    assert found == {"aten::add": 1}


def test_a_plain_pytorch_model_has_blocks_and_roles(tmp_path: Path) -> None:
    head = op("aten::linear", 2, op("aten::matmul", 2, op("aten::mm", 50, op("aten::resolve_conj", 1))))
    step = [
        op("aten::embedding", 2, op("aten::index_select", 9, op("aten::empty", 1))),
        *block() * 6,
        layer_norm(),
        head,
        op("aten::argmax", 6, op("aten::as_strided", 1)),
    ]
    cut = segment(opened(tmp_path, step * 3))
    assert cut.steps["blocks"].to_list() == [6, 6, 6]
    placed = cut.events.filter(pl.col("section").cast(pl.String) == "block")
    roles = Counter(placed["role"].cast(pl.String).to_list())
    wanted = {"norm": 36, "qkv_proj": 18, "attention": 18, "o_proj": 18, "gate_up": 18, "activation": 18, "down": 18}
    assert {role: roles[role] for role in wanted} == wanted


def test_no_ops_give_none() -> None:
    (trace,) = open_traces(CASES / "109_cpu_only.json", cache=False)
    columns = ["index", "name", "pid", "tid", "start_ns", "dur_ns"]
    assert standing_for_kernels(trace.events.select(columns).collect().clear()).is_empty()
