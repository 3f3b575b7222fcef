"""Times, ids, categories and labels come out as they are in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tests.support.stores import codes, kernels, warning
from traceanalyzer.problems import TraceError
from traceanalyzer.read import Store

ReadOne = Callable[..., Store]


def trace(*events: dict[str, Any], **root: Any) -> str:
    return json.dumps({**root, "traceEvents": list(events)})


def kernel(ts: Any, dur: Any, name: str = "k", **args: Any) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, **args}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def host(ts: Any, dur: Any, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": "h", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


@pytest.mark.parametrize(
    "written",
    [
        "1234.567",
        "6520430064557.741",
        "8796093022207.999",
        "9007199254740.993",
        "1767225600000000.123",
        "1767225600000001",
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_times_are_exact_to_the_nanosecond(written: str, quoted: bool, read_one: ReadOne) -> None:
    value = f'"{written}"' if quoted else written
    store = read_one(trace(kernel(0, 1)).replace('"ts": 0', f'"ts": {value}'))
    whole, _, part = written.partition(".")
    assert kernels(store)["start_ns"].to_list() == [int(whole) * 1000 + int(part or 0)]
    assert store.metadata.base_ns == int(whole) * 1000 + int(part or 0)


def test_spellings_of_numbers_are_understood(read_one: ReadOne) -> None:
    durations = [1, 1.5, "2", "2.5", " 3 ", "1e1", "+4"]
    store = read_one(trace(*(kernel(100 + 50 * i, dur) for i, dur in enumerate(durations))))
    assert kernels(store)["dur_ns"].to_list() == [1000, 1500, 2000, 2500, 3000, 10_000, 4000]


def test_the_last_of_two_equal_keys_counts(read_one: ReadOne) -> None:
    store = read_one(trace(kernel(5, 1)).replace('"ts": 5', '"ts": 9, "ts": 5'))
    assert kernels(store)["start_ns"].to_list() == [5000]


def test_the_base_is_the_earliest_event_that_can_be_used(read_one: ReadOne) -> None:
    store = read_one(trace(host(-3, 1), host(0, 0), kernel(500, 2), host(400, 1)))
    assert store.metadata.base_ns == 400_000
    assert warning(store, "invalid_host_times").count == 2


def test_gpu_events_at_zero_or_a_day_away_are_stubs(read_one: ReadOne) -> None:
    real = [kernel(1_000_000 + 10 * i, 5) for i in range(50)]
    store = read_one(trace(host(999_000, 1), kernel(0, 3), kernel(9e11, 3), *real))
    assert kernels(store).height == 50
    assert warning(store, "invalid_gpu_times").count == 2


def test_two_clocks_in_one_file_are_not_judged(read_one: ReadOne) -> None:
    store = read_one(trace(*(host(10 + i, 1) for i in range(9)), *(kernel(9e11 + 10 * i, 5) for i in range(9))))
    assert kernels(store).height == 9


def test_ids_are_lossless(read_one: ReadOne) -> None:
    values = [2**63 + 1, 2**64 - 1, 2**64, 2**64 + 1, str(2**70), "77", -5, 12.0, None, -1]
    store = read_one(trace(*(kernel(100 + 10 * i, 5, correlation=v) for i, v in enumerate(values))))
    found = kernels(store)["correlation"].to_list()
    assert found[:2] == [2**63 + 1, 2**64 - 1]
    assert found[5] == 77
    assert found[7] == 12
    assert found[8:] == [None, None]
    assert len(set(found)) == 9
    texts = store.metadata.oversize_ids
    assert [texts[found[i]] for i in (2, 3, 4, 6)] == [str(2**64), str(2**64 + 1), str(2**70), "-5"]


def test_equal_oversize_ids_stay_equal(read_one: ReadOne) -> None:
    big = 10**30
    store = read_one(trace(host(90, 5, "cuda_runtime", correlation=big), kernel(100, 5, correlation=big)))
    assert store.scan().collect()["correlation"].n_unique() == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Kernel", "kernel"),
        ("Memcpy", "gpu_memcpy"),
        ("Operator", "cpu_op"),
        ("Runtime", "cuda_runtime"),
        ("Mine", "Mine"),
    ],
)
def test_old_categories_get_todays_names(old: str, new: str, read_one: ReadOne) -> None:
    store = read_one(trace({**kernel(100, 5), "cat": old}))
    assert store.scan().collect()["cat"].cast(str).to_list() == [new]


def test_old_spellings_of_args_are_read(read_one: ReadOne) -> None:
    store = read_one(trace(kernel(100, 5, **{"external id": 9}), host(90, 3, **{"Input dims": [[2, 3]]})))
    assert kernels(store)["external_id"].to_list() == [9]
    assert store.scan(["cpu_op"]).collect()["input_dims"].cast(str).to_list() == ["[[2, 3]]"]


def test_pids_and_tids_are_text(read_one: ReadOne) -> None:
    pids = [1, "1", "Spans", "", -3, 2.0, None, True]
    store = read_one(trace(*({**host(10 + i, 1), "pid": pid} for i, pid in enumerate(pids))))
    found = store.scan().sort("index").collect()["pid"].cast(str).to_list()
    assert found[:7] == ["1", "1", "Spans", "", "-3", "2", None]


def test_what_a_kernel_was_launched_with_is_kept(read_one: ReadOne) -> None:
    args = {"grid": [3, 1, 1], "block": [128, 1, 1], "registers per thread": 40, "shared memory": 1024, "bytes": "4096"}
    store = read_one(trace(kernel(100, 5, **args, **{"graph id": 2, "graph node id": 7})))
    row = kernels(store).row(0, named=True)
    assert (row["grid"], row["thread_block"]) == ("[3, 1, 1]", "[128, 1, 1]")
    assert (row["registers"], row["shared_memory"], row["bytes"]) == (40, 1024, 4096)
    assert (row["graph_id"], row["graph_node"]) == (2, 7)


def test_collectives_and_triton_launches_keep_their_args(read_one: ReadOne) -> None:
    collective = {"Collective name": "all_reduce", "In msg nelems": 4096, "Process Group Ranks": "[0, 1]"}
    triton = {"kernel_backend": "triton", "num_warps": 8}
    store = read_one(trace(kernel(100, 5, **collective), host(50, 3, **triton), host(60, 3)))
    extras = store.scan().sort("index").collect()["extra"].cast(str).to_list()
    assert [None if e is None else json.loads(e) for e in extras] == [collective, triton, None]


def test_begin_and_end_events_are_joined(read_one: ReadOne) -> None:
    def half(ph: str, ts: float, name: str | None = None, tid: int = 7) -> dict[str, Any]:
        named = {} if name is None else {"name": name, "cat": "kernel", "args": {"device": 0, "stream": 7}}
        return {"ph": ph, "pid": 0, "tid": tid, "ts": ts, **named}

    events = [
        half("E", 1),
        half("B", 10, "outer"),
        half("B", 12, "inner"),
        half("E", 15),
        half("E", 20),
        half("B", 30, "never"),
    ]
    store = read_one(trace(*events, half("B", 5, "other", tid=8), half("E", 40, tid=8)))
    found = kernels(store).select(pl.col("name").cast(str), "start_ns", "dur_ns").sort("start_ns").rows()
    assert found == [("other", 5000, 35_000), ("outer", 10_000, 10_000), ("inner", 12_000, 3_000)]
    assert warning(store, "begin_end_pairs").count == 3
    assert warning(store, "unmatched_begin_end").count == 2


def test_overlapping_pairs_are_told_apart_by_name(read_one: ReadOne) -> None:
    base = {"cat": "kernel", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    events = [
        {**base, "ph": ph, "name": name, "ts": ts}
        for ph, name, ts in [("B", "a", 1), ("B", "b", 5), ("E", "a", 6), ("E", "b", 9)]
    ]
    assert kernels(read_one(trace(*events)))["dur_ns"].to_list() == [5000, 4000]


def chain(durations: list[float], names: list[str] | None = None, gap: float = 1.0) -> list[dict[str, Any]]:
    events, at = [], 1000.0
    for i, dur in enumerate(durations):
        events.append(kernel(at, dur, names[i] if names else f"k{i % 3}"))
        at += min(dur, 20.0) + gap
    return events


def test_a_kernel_that_covers_the_rest_of_its_stream_is_clipped(read_one: ReadOne) -> None:
    durations = [10.0] * 12
    durations[4] = 90_000.0
    store = read_one(trace(*chain(durations)))
    assert kernels(store)["dur_ns"].to_list()[4] == 21_000
    assert warning(store, "clipped_durations").count == 1


def test_kernels_that_start_together_hide_no_implausible_duration(read_one: ReadOne) -> None:
    durations = [10.0] * 12
    durations[4] = 90_000.0
    events = chain(durations)
    together = {**events[4], "name": "k0", "dur": 10.0}
    store = read_one(trace(*events[:5], together, *events[5:]))
    assert kernels(store)["dur_ns"].to_list() == [*[10_000] * 4, 21_000, *[10_000] * 8]


def test_a_lone_kernel_that_covers_many_others_is_clipped(read_one: ReadOne) -> None:
    durations = [10.0] * 12
    durations[4] = 90_000.0
    names = [f"k{i}" for i in range(12)]
    assert codes(read_one(trace(*chain(durations, names)))) == ["clipped_durations"]


def test_overlap_of_dependent_launches_is_not_clipped(read_one: ReadOne) -> None:
    store = read_one(trace(*chain([10.0] * 12, gap=-4.0)))
    assert kernels(store)["dur_ns"].unique().to_list() == [10_000]
    assert codes(store) == []


def test_long_kernels_on_another_stream_are_not_clipped(read_one: ReadOne) -> None:
    long = kernel(1000.0, 5_000.0, "k0", stream=9)
    store = read_one(trace(*chain([10.0] * 12), long))
    assert kernels(store)["dur_ns"].max() == 5_000_000


def test_a_long_kernel_that_nothing_follows_is_not_clipped(read_one: ReadOne) -> None:
    assert codes(read_one(trace(*chain([10.0] * 11 + [90_000.0])))) == []


def test_overlapping_communication_of_one_kind_is_not_clipped(read_one: ReadOne) -> None:
    """Several queues can share a stream number: kernels as long as their like are believed."""
    slow = [kernel(1000 + 300 * i, 250.0, "rccl_all_reduce") for i in range(6)]
    quick = [kernel(1010 + 300 * i, 20.0, "gemm") for i in range(6)]
    assert codes(read_one(trace(*slow, *quick))) == []


def test_a_trace_without_gpu_work_is_read_and_says_so(read_one: ReadOne) -> None:
    store = read_one(trace(host(100, 5)))
    assert codes(store) == ["cpu_only"]
    assert "CUDA" in warning(store, "cpu_only").message


def test_metadata_alone_is_refused(read_one: ReadOne) -> None:
    with pytest.raises(TraceError, match="no events"):
        read_one(trace({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}))


def test_what_the_file_says_about_itself_is_kept(document: Any, read_one: ReadOne) -> None:
    document["with_stack"] = 1
    metadata = read_one(json.dumps(document)).metadata
    assert metadata.device_properties[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert metadata.base_time_ns == 1767225600000000000
    assert metadata.distributed["world_size"] == metadata.world_size == 1
    assert metadata.properties["with_stack"] == 1
    assert metadata.process_names["4100"] == "VLLM::Worker"
    assert metadata.thread_names["0/7"] == "stream 7 "
    assert metadata.text_bytes == len(json.dumps(document))


def test_an_odd_header_costs_only_itself(text: str, read_one: ReadOne) -> None:
    store = read_one(text.replace('"schemaVersion": 1', '"schemaVersion": NaN, "x": Infinity'))
    assert store.metadata.rank == 0
    store = read_one(text.replace('"schemaVersion": 1', '"schemaVersion": "a"b"'))
    assert codes(store) == ["damaged_header"]
    assert kernels(store).height == 68
