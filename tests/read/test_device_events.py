"""What ran on a device: kernels whose args do not say where, kernels of no duration, and other accelerators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import REPORTS
from traceanalyzer.read import Store
from traceanalyzer.segment import segment

ReadOne = Callable[..., Store]


def event(cat: str, ts: float, dur: float = 5.0, name: str = "k", **fields: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": {}} | fields


def of(*events: dict[str, Any]) -> str:
    return json.dumps({"traceEvents": list(events)})


def places(store: Store) -> set[tuple[int | None, int | None]]:
    return set(store.scan(("kernel", "gpu_memcpy")).select("device", "stream").unique().collect().iter_rows())


def codes(store: Store) -> dict[str, int | None]:
    return {warning.code: warning.count for warning in store.metadata.warnings}


def message(store: Store, code: str) -> str:
    return next(warning.message for warning in store.metadata.warnings if warning.code == code)


@pytest.mark.parametrize(("pid", "tid"), [(2, 7), ("2", "stream 7"), ("GPU 2", "7"), ("device 2", "stream 7 ")])
def test_device_and_stream_are_the_process_and_the_thread_where_args_lack_them(
    read_one: ReadOne, pid: Any, tid: Any
) -> None:
    assert places(read_one(of(event("kernel", 10, pid=pid, tid=tid)))) == {(2, 7)}


def test_events_without_a_device_join_those_of_their_process(read_one: ReadOne) -> None:
    """The process need not be the device's number: what others of it state counts."""
    stated = [event("kernel", 10 * i, pid=1234, tid=9, args={"device": 3, "stream": 7}) for i in range(1, 4)]
    bare = [event("gpu_memcpy", 100, pid=1234, tid=9), event("kernel", 200, pid=1234, tid=9, args={"stream": 7})]
    assert places(read_one(of(*stated, *bare))) == {(3, 7)}


def test_the_process_of_the_host_is_no_device(read_one: ReadOne) -> None:
    host = event("cpu_op", 1, name="aten::mm", pid=4711, tid=4711)
    assert places(read_one(of(host, event("kernel", 10, pid=4711, tid=4711)))) == {(0, 4711)}


def test_in_a_container_a_gpu_and_the_server_may_share_a_number(read_one: ReadOne) -> None:
    host = event("cpu_op", 1, name="aten::mm", pid=1, tid=1)
    assert places(read_one(of(host, event("kernel", 10, pid=1)))) == {(1, 7)}


def test_a_copy_without_a_device_makes_no_second_timeline() -> None:
    trace = ta.open_trace(REPORTS / "suites" / "memcpy_without_device.json")
    assert trace.device_events["device"].to_list() == [0, 0]


def test_kernels_without_a_device_are_a_gpus() -> None:
    trace = ta.open_trace(REPORTS / "traces" / "kernels_without_device.json.gz")
    events = trace.device_events
    assert not trace.cpu_only
    assert (events["device"].unique().to_list(), events["stream"].unique().to_list()) == ([2], [0])
    assert events["is_kernel"].sum() == 20
    assert "cpu_only" not in {warning.code for warning in trace.metadata.warnings}


def test_kernels_of_no_duration_are_left_out_and_counted() -> None:
    trace = ta.open_trace(REPORTS / "traces" / "zero_duration_kernels.json.gz")
    warning = next(warning for warning in trace.metadata.warnings if warning.code == "zero_duration")
    assert (trace.device_events.height, warning.count) == (5, 5)
    assert "5 kernels" in warning.message


def test_a_trace_whose_kernels_all_have_no_duration_is_not_a_cpus(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(of(event("kernel", 10, 0.0), event("cpu_op", 5, name="aten::mm", pid=9, tid=9)))
    trace = ta.open_trace(path)
    assert not trace.cpu_only
    assert trace.device_events.is_empty()


@pytest.mark.parametrize("prefix", ["xpu", "npu", "mlu", "musa", "privateuse1"])
def test_another_accelerators_kernels_are_kernels(read_one: ReadOne, prefix: str) -> None:
    args = {"device": 0, "stream": 7, "correlation": 1}
    launch = event(f"{prefix}_runtime", 1, name="launch", pid=9, tid=9, args={"correlation": 1})
    copy = event(f"{prefix}_memcpy", 30, args=args)
    store = read_one(of(launch, event(f"{prefix}_kernel", 10, args=args), copy))
    trace = ta.Trace.from_store(store)
    assert trace.device_events.select("cat").to_series().cast(str).to_list() == ["kernel", "gpu_memcpy"]
    assert trace.launches.height == 1
    assert codes(store) == {}


def test_a_category_that_follows_the_pattern_of_kernels_is_read_as_kernels(read_one: ReadOne) -> None:
    args = {"stream": 7, "correlation": 1}
    store = read_one(of(*(event("hpu_compute", 10 * i, args=args) for i in range(1, 4)), event("hpu_sync", 99)))
    assert ta.Trace.from_store(store).device_events["is_kernel"].to_list() == [True] * 3
    assert codes(store) == {}


def test_a_category_that_does_not_is_named_with_its_count(read_one: ReadOne) -> None:
    work = [event("mtia_ccp_events", 10 * i, name="dma_request", args={"stream": 7}) for i in range(1, 4)]
    store = read_one(of(*work, event("cpu_op", 1, name="aten::copy_", pid=9, tid=9)))
    assert codes(store) == {"accelerator_events": 3}
    assert "mtia_ccp_events" in message(store, "accelerator_events")
    trace = ta.Trace.from_store(store)
    assert not trace.cpu_only
    assert trace.device_events.is_empty()


def test_markers_of_vllm_are_used_on_another_accelerator(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for step in range(2):
        at = 1000.0 * (step + 1)
        label = "execute_context_0(0)_generation_4(4)"
        events.append(event("user_annotation", at, 500, name=label, pid=9, tid=9))
        for number in range(3):
            link = {"correlation": 10 * step + number + 1}
            launch = event("xpu_runtime", at + number, 1, name="urEnqueueKernelLaunch", pid=9, tid=9, args=link)
            events += [launch, event("kernel", at + 100 + 10 * number, name=f"gemm_{number}", tid="7", args=link)]
    path = tmp_path / "trace.json"
    path.write_text(of(*events))
    steps = segment(ta.open_trace(path)).steps
    assert steps["source"].to_list() == ["vllm", "vllm"]
    assert steps["phase"].to_list() == ["decode", "decode"]
    assert steps["kernels"].to_list() == [3, 3]


def test_launches_without_kernels_are_said_and_host_ops_do_not_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    launches = [event("cuda_runtime", 10 * i, name="cudaLaunchKernel", pid=9, tid=9) for i in range(1, 5)]
    path.write_text(of(*launches, event("cpu_op", 5, name="aten::uniform_", pid=9, tid=9)))
    trace = ta.open_trace(path)
    assert {warning.code: warning.count for warning in trace.metadata.warnings} == {"kernels_not_recorded": 4}
    assert trace.device_events.is_empty()
    assert ta.hotspots(trace).rows.is_empty()


def test_hardware_counters_and_captures_are_named_as_what_took_the_place_of_kernels(read_one: ReadOne) -> None:
    launch = event("cuda_runtime", 10, name="cudaLaunchKernel", pid=9, tid=9)
    counters = read_one(of(launch, event("cuda_profiler_range", 20, name="some_kernel")))
    assert "1 range of hardware counters" in message(counters, "kernels_not_recorded")
    capture = read_one(of(event("cuda_runtime", 5, name="cudaStreamBeginCapture", pid=9, tid=9), launch))
    assert "--capture" in message(capture, "kernels_not_recorded")


def test_events_without_a_category_of_an_accelerators_process_are_named(read_one: ReadOne) -> None:
    """As Ascend's profiler writes them."""
    process = {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}}
    work = {"ph": "X", "name": "MatMulV2", "pid": 2, "tid": 7, "ts": 10, "dur": 5, "args": {"Stream Id": 7}}
    store = read_one(of(process, work, event("cpu_op", 1, name="aten::mm", pid=9, tid=9)))
    assert codes(store) == {"accelerator_events": 1}
    assert "Ascend Hardware" in message(store, "accelerator_events")


def test_kernels_that_share_a_correlation_of_zero_are_not_one_launchs(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(of(*(event("kernel", 10 * i, args={"correlation": 0}) for i in range(1, 20))))
    assert ta.open_trace(path).device_events["correlation"].null_count() == 19


def test_a_graph_launch_may_have_the_correlation_zero(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    launch = event("cuda_runtime", 1, name="cudaGraphLaunch", pid=9, tid=9, args={"correlation": 0})
    path.write_text(of(launch, *(event("kernel", 10 * i, args={"correlation": 0}) for i in range(1, 20))))
    assert ta.open_trace(path).device_events["correlation"].null_count() == 0
