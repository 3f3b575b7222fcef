"""Every kernel of the shared traces falls in a family."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.support.places import TRACES
from traceanalyzer.names import parse

HOST_WRAPPERS = {"Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue"}
"""Steps of torch.compile on the host that are recorded as operators: they are no kernel and stay unknown."""


class Event(msgspec.Struct):
    name: str | int | None = None
    cat: str | None = None
    args: dict[str, object] = {}
    dur: float | str | None = None


class File(msgspec.Struct):
    trace_events: list[Event] = msgspec.field(name="traceEvents")


def names_in(path: Path, categories: set[str]) -> set[str]:
    events = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=File).trace_events
    names = {str(event.name) for event in events if event.cat in categories}
    return names | {str(event.args["kernel"]) for event in events if event.args.get("kernel")}


@pytest.mark.parametrize(
    "trace",
    [
        "gptoss20b_vllm_decode_mi300x",
        "gptoss20b_vllm_decode_mi300x.capture",
        "qwen1.5_0.5b_hf_h100",
        "qwen3_8b_sglang_decode_mi300x",
    ],
)
def test_every_gpu_kernel_has_a_family(shared: Path, trace: str) -> None:
    names = names_in(shared / "traces/gpu" / f"{trace}.json.gz", {"kernel", "gpu_memcpy", "gpu_memset"})
    assert names
    assert [name for name in names if parse(name).family == "unknown"] == []


@pytest.mark.parametrize("trace", ["kineto_resnet", "ddp_resnet18_mi300", "hta_alexnet", "hta_dlrm_neg", "vit_mi300"])
def test_every_kernel_with_a_hundredth_of_the_time_is_understood(shared: Path, trace: str) -> None:
    events = msgspec.json.decode(gzip.decompress((shared / f"traces/others/{trace}.json.gz").read_bytes()), type=File)
    times: Counter[str] = Counter()
    for event in events.trace_events:
        if event.cat in {"kernel", "Kernel"}:
            times[str(event.name)] += round(1000 * float(event.dur or 0))
    heavy = [name for name, time in times.items() if 100 * time > times.total()]
    assert heavy
    assert [name for name in heavy if parse(name).kind == "unknown"] == []
    convolutions = [parse(name) for name in times if parse(name).kind == "convolution"]
    assert not any(kernel.retunable or kernel.role != "other" for kernel in convolutions)


def test_every_operator_of_the_cpu_traces_has_a_family() -> None:
    for path in sorted(TRACES.rglob("*.json.gz")):
        unknown = {name for name in names_in(path, {"cpu_op"}) if parse(name).family == "unknown"}
        assert unknown <= HOST_WRAPPERS, path.name
