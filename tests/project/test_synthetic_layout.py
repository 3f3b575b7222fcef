"""The document looks like one that torch.profiler wrote: keys, their order, argument sets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from synthetic import TraceSpec, decode_steps, encode, generate, write
from synthetic.models import gptoss_20b_decode, llama_dense
from traceanalyzer.problems import TraceError

Keys = tuple[str, ...]


def layouts(events: Iterable[dict[str, Any]], kind: str) -> set[tuple[Keys, Keys]]:
    """Key orders of the events of one category (or phase, where there is none), and of their arguments."""
    return {(tuple(e), tuple(e.get("args", ()))) for e in events if kind in (e.get("cat"), e["ph"])}


def read(path: Path) -> dict[str, Any]:
    with gzip.open(path) as file:
        document: dict[str, Any] = json.load(file)
    return document


def small(vendor: str, launch: str = "graph") -> TraceSpec:
    model = llama_dense(layers=3, batch=2, vendor=vendor)  # type: ignore[arg-type]
    return TraceSpec(model=model, steps=decode_steps(2, batch=2), vendor=vendor, launch=launch)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def recorded(samples: Path) -> dict[str, Any]:
    return read(samples / "gptoss24_vllm_cpu.json.gz")


@pytest.mark.parametrize("kind", ["user_annotation", "cpu_op", "Trace", "M", "i"])
def test_host_events_have_the_keys_of_a_recorded_trace(recorded: dict[str, Any], kind: str) -> None:
    synthetic = layouts(generate(small("cuda")).events, kind)
    assert synthetic
    assert synthetic <= layouts(recorded["traceEvents"], kind)


def test_the_document_has_the_keys_of_a_recorded_trace_in_order(recorded: dict[str, Any]) -> None:
    synthetic = list(generate(small("cuda")).document)
    common = [key for key in recorded if key in synthetic]
    assert {"schemaVersion", "deviceProperties", "distributedInfo", "trace_id", "baseTimeNanoseconds"} <= set(common)
    assert (synthetic[0], synthetic[-2:]) == (common[0], common[-2:])


def test_metadata_events_name_the_same_things(recorded: dict[str, Any]) -> None:
    def named(document: dict[str, Any]) -> set[str]:
        return {event["name"] for event in document["traceEvents"] if event["ph"] == "M"}

    assert named(generate(small("cuda")).document) == named(recorded)


@pytest.mark.parametrize(
    ("file", "vendor", "kinds"),
    [
        ("gptoss20b_vllm_decode_mi300x", "rocm", ("kernel", "gpu_memcpy", "cuda_runtime", "ac2g", "python_function")),
        ("qwen1.5_0.5b_hf_h100", "cuda", ("gpu_memcpy", "cuda_runtime", "ac2g", "gpu_user_annotation")),
    ],
)
def test_device_events_have_the_keys_of_real_gpus(shared: Path, file: str, vendor: str, kinds: Keys) -> None:
    real = read(shared / "traces" / "gpu" / f"{file}.json.gz")
    spec = TraceSpec(**{**small(vendor).__dict__, "with_stack": True})
    synthetic = generate(spec)
    for kind in kinds:
        assert layouts(synthetic.events, kind) <= layouts(real["traceEvents"], kind), kind
    properties = list(synthetic.document["deviceProperties"][0])
    assert properties == list(real["deviceProperties"][0])


def test_eager_cuda_kernels_have_the_keys_of_an_h100(shared: Path) -> None:
    real = read(shared / "traces" / "gpu" / "qwen1.5_0.5b_hf_h100.json.gz")
    synthetic = generate(small("cuda", "eager")).events
    assert layouts(synthetic, "kernel") <= layouts(real["traceEvents"], "kernel")


def test_graph_kernels_lack_what_their_vendor_leaves_out() -> None:
    def kernels(vendor: str) -> list[dict[str, Any]]:
        events = generate(small(vendor)).events
        return [e["args"] for e in events if e.get("cat") == "kernel" and "External id" not in e["args"]]

    assert all("grid" in args and "graph node id" in args for args in kernels("cuda"))
    assert all(set(args) == {"device", "stream", "correlation", "kind"} for args in kernels("rocm"))


def test_a_graph_shares_one_correlation_and_every_flow_has_both_ends() -> None:
    trace = generate(small("cuda"))
    graph = [e for e in trace.events if e.get("name") == "cudaGraphLaunch"]
    correlations = [event.correlation for event in trace.truth.events]
    assert all(correlations.count(e["args"]["correlation"]) > 20 for e in graph)
    starts = {e["id"] for e in trace.events if e["ph"] == "s"}
    assert starts == {e["id"] for e in trace.events if e["ph"] == "f"}


def test_external_ids_link_kernels_launches_and_operators() -> None:
    trace = generate(small("rocm", "eager"))
    ops = {e["args"]["External id"]: e for e in trace.events if e.get("cat") == "cpu_op"}
    calls = {e["args"]["correlation"]: e for e in trace.events if e.get("cat") == "cuda_runtime"}
    for event in trace.truth.events:
        args = trace.events[event.event]["args"]
        call = calls[args["correlation"]]
        op = ops[args["External id"]]
        assert call["args"]["External id"] == args["External id"]
        assert op["ts"] < call["ts"] < op["ts"] + op["dur"]


def test_tensile_launches_count_work_items_in_the_grid() -> None:
    trace = generate(small("rocm"))
    lm_head = next(event for event in trace.truth.events if event.role == "lm_head")
    grid, block = (trace.events[lm_head.event]["args"][key] for key in ("grid", "block"))
    assert grid == [128256 // 128 * block[0], 1, 1]


def test_times_look_like_kinetos(recorded: dict[str, Any]) -> None:
    trace = generate(small("cuda"))
    assert all(isinstance(e["ts"], float) for e in trace.events)
    assert all(1e12 < e["ts"] < 1e13 for e in trace.events)
    assert trace.document["baseTimeNanoseconds"] > 1e18


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_written_files_read_back_as_the_document(tmp_path: Path, name: str) -> None:
    trace = generate(gptoss_20b_decode(steps=1))
    path = write(trace, tmp_path / name)
    data = path.read_bytes()
    assert (data[:2] == b"\x1f\x8b") == name.endswith(".gz")
    document = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    assert document == trace.document
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    trace = generate(small("cuda"))
    (tmp_path / "trace.json").mkdir()
    with pytest.raises(TraceError, match=r"trace\.json"):
        write(trace, tmp_path / "trace.json")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_the_same_specification_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = (encode(generate(gptoss_20b_decode(steps=2), seed=5).document) for _ in range(2))
    assert one == two
    assert one != encode(generate(gptoss_20b_decode(steps=2), seed=6).document)
    first = write(generate(small("cuda")), tmp_path / "a.json.gz").read_bytes()
    assert first == write(generate(small("cuda")), tmp_path / "b.json.gz").read_bytes()
    assert first[4:8] == bytes(4)
