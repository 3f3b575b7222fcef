"""Writes a timeline the way torch.profiler does: keys, their order, argument sets by vendor, event order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from synthetic.chrome import Event, complete, flow_end, flow_start, us
from synthetic.device_events import device_event, runtime_call
from synthetic.frames import PythonFrame, python_frames
from synthetic.header import header
from synthetic.spec import TraceSpec
from synthetic.timeline import DeviceRecord, HostLaunch, HostStep, Timeline

ANNOTATED_ENGINES = frozenset({"vllm", "vllm_detailed", "vllm_old", "sglang", "profiler_step"})
NAME_OF_PROCESS = "VLLM::Worker"


@dataclass(frozen=True)
class Laid:
    """The document, and for every kept device record its index in `traceEvents`."""

    document: dict[str, Any]
    placed: tuple[tuple[int, DeviceRecord], ...]


def lay_out(spec: TraceSpec, timeline: Timeline, kept: Iterable[DeviceRecord]) -> Laid:
    """Build the document. `kept` are the device records that the profiler did not lose."""
    kept = tuple(kept)
    streams = tuple(sorted({record.stream for record in kept}))
    events: list[Event] = list(_process_events(spec, timeline, streams)) if spec.thread_names else []
    events.extend(_host_events(spec, timeline))
    placed: list[tuple[int, DeviceRecord]] = []
    for event, record in _device_part(spec, timeline, kept):
        if record is not None:
            placed.append((len(events), record))
        events.append(event)
    if _has_gpu_annotations(spec):
        events.extend(_gpu_annotations(spec, timeline, kept))
    events.extend(_closing_events(timeline))
    return Laid({**header(spec), "traceEvents": events, "traceName": "trace.json"}, tuple(placed))


def _process_events(spec: TraceSpec, timeline: Timeline, streams: tuple[int, ...]) -> Iterator[Event]:
    """Names of processes and threads, as metadata events."""
    ts = us(timeline.start_ns)

    def named(name: str, pid: int, tid: int, key: str, value: str | int) -> Event:
        return {"ph": "M", "name": name, "ts": ts, "pid": pid, "tid": tid, "args": {key: value}}

    for pid, label, order in (
        (spec.pid, "CPU", spec.pid),
        (spec.device_id, f"GPU {spec.device_id}", 5_000_000 + spec.device_id),
    ):
        yield named("process_name", pid, 0, "name", NAME_OF_PROCESS)
        yield named("process_labels", pid, 0, "labels", label)
        yield named("process_sort_index", pid, 0, "sort_index", order)
    for stream in streams:
        yield named("thread_name", spec.device_id, stream, "name", f"stream {stream} ")
        yield named("thread_sort_index", spec.device_id, stream, "sort_index", stream)
    yield named("thread_name", spec.pid, spec.pid, "name", f"thread {spec.pid} ({NAME_OF_PROCESS})")
    yield named("thread_sort_index", spec.pid, spec.pid, "sort_index", spec.pid)


def _host_events(spec: TraceSpec, timeline: Timeline) -> Iterator[Event]:
    """Annotations and CPU ops by start, then Python frames. `Ev Idx` counts through all of them."""
    records: list[tuple[int, HostStep | HostLaunch]] = []
    if spec.engine in ANNOTATED_ENGINES:
        records.extend((step.start_ns, step) for step in timeline.steps)
    records.extend((launch.op_start_ns, launch) for launch in timeline.launches if launch.op is not None)
    records.sort(key=lambda record: record[0])
    for index, (_, record) in enumerate(records):
        if isinstance(record, HostStep):
            yield _annotation(spec, record, index)
        else:
            yield _cpu_op(spec, record, index)
    for number, frame in enumerate(python_frames(spec, timeline)):
        yield _python_function(spec, frame, len(records) + number)


def _annotation(spec: TraceSpec, step: HostStep, index: int) -> Event:
    dur = step.marker_end_ns - step.start_ns
    event = complete("user_annotation", step.label or "", spec.pid, spec.pid, step.start_ns, dur)
    return event | {"args": {"External id": step.external_id, "Record function id": 0, "Ev Idx": index}}


def _cpu_op(spec: TraceSpec, launch: HostLaunch, index: int) -> Event:
    args: dict[str, Any] = {"External id": launch.external_id, "Record function id": 0}
    if spec.record_shapes:
        dims = [list(shape) for shape in launch.launched[0].dims or ()]
        args |= {
            "Concrete Inputs": [""] * len(dims),
            "Input type": ["c10::BFloat16"] * len(dims),
            "Input Strides": [_strides(shape) for shape in dims],
            "Input Dims": dims,
        }
    event = complete("cpu_op", launch.op or "", spec.pid, spec.pid, launch.op_start_ns, launch.op_dur_ns)
    return event | {"args": args | {"Ev Idx": index}}


def _strides(shape: list[int]) -> list[int]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def _python_function(spec: TraceSpec, frame: PythonFrame, index: int) -> Event:
    args: dict[str, Any] = {"Python parent id": frame.parent, "Python id": frame.number}
    if frame.module is not None:
        args["Python module id"] = frame.module
    event = complete("python_function", frame.name, spec.pid, spec.pid, frame.start_ns, frame.end_ns - frame.start_ns)
    return event | {"args": args | {"Ev Idx": index}}


def _device_part(
    spec: TraceSpec, timeline: Timeline, kept: tuple[DeviceRecord, ...]
) -> Iterator[tuple[Event, DeviceRecord | None]]:
    """Runtime calls, device events and the flows between them, buffer by buffer.

    The tracer hands its buffers over as they fill: device events of one launch lie together, but a later
    buffer can come before an earlier one, so that the file as a whole is not sorted by time.
    """
    of_launch: dict[int, list[DeviceRecord]] = defaultdict(list)
    for record in kept:
        of_launch[record.correlation].append(record)
    calls = {launch.correlation: launch for launch in timeline.launches}
    correlations = sorted(of_launch.keys() | calls.keys())
    if spec.shuffled:
        middle = len(correlations) * 2 // 3
        correlations = correlations[middle:] + correlations[:middle]
    for correlation in correlations:
        for record in sorted(of_launch[correlation], key=lambda record: record.stream):
            yield device_event(spec, record), record
            yield flow_end(correlation, spec.device_id, record.stream, record.start_ns), None
        if correlation in calls:
            call = calls[correlation]
            yield runtime_call(spec, call), None
            if call.graph and spec.vendor == "rocm":
                yield flow_end(correlation, spec.pid, spec.pid, call.start_ns), None
            else:
                yield flow_start(correlation, spec.pid, call.start_ns), None


def _has_gpu_annotations(spec: TraceSpec) -> bool:
    wanted = spec.vendor == "cuda" if spec.gpu_annotations is None else spec.gpu_annotations
    return wanted and spec.engine in ANNOTATED_ENGINES


def _gpu_annotations(spec: TraceSpec, timeline: Timeline, kept: tuple[DeviceRecord, ...]) -> Iterator[Event]:
    """The marker once more on every stream that it launched work on: never a kernel."""
    of_step: dict[int | None, list[DeviceRecord]] = defaultdict(list)
    for record in kept:
        of_step[record.step].append(record)
    for step in timeline.steps:
        own = of_step[step.index]
        for stream in sorted({record.stream for record in own}):
            records = [record for record in own if record.stream == stream]
            start = min(record.start_ns for record in records)
            end = max(record.start_ns + record.dur_ns for record in records)
            event = complete("gpu_user_annotation", step.label or "", spec.device_id, stream, start, end - start)
            yield event | {"args": {"External id": step.external_id}}


def _closing_events(timeline: Timeline) -> Iterator[Event]:
    start = timeline.start_ns - 150_000
    yield complete("Trace", "PyTorch Profiler (0)", 0, 0, start, timeline.end_ns - start) | {
        "pid": "Spans",
        "tid": "PyTorch Profiler",
        "args": {"Op count": 0},
    }
    yield {
        "ph": "M",
        "name": "process_sort_index",
        "ts": us(start),
        "pid": "Spans",
        "tid": 0,
        "args": {"sort_index": 536870912},
    }
    yield {
        "ph": "i",
        "s": "g",
        "name": "Iteration Start: PyTorch Profiler",
        "pid": "Traces",
        "tid": "Trace PyTorch Profiler",
        "ts": us(start),
    }
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": us(timeline.end_ns)}
