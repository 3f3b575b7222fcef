"""Writes a timeline the way torch.profiler does: keys, their order, argument sets by vendor, event order."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from traceanalyzer.synthetic.devices import default_device
from traceanalyzer.synthetic.frames import PythonFrame, python_frames
from traceanalyzer.synthetic.spec import Category, DeviceSpec, Dim, KernelSpec, TraceSpec
from traceanalyzer.synthetic.timeline import DeviceRecord, HostLaunch, HostStep, Timeline

Event: TypeAlias = dict[str, Any]

ANNOTATED_ENGINES = frozenset({"vllm", "vllm_detailed", "vllm_old", "sglang", "profiler_step"})
CUDA_CALLS = {
    "graph": ("cudaGraphLaunch", 311),
    "kernel": ("cudaLaunchKernel", 211),
    "extended": ("cudaLaunchKernelExC", 430),
    "gpu_memcpy": ("cudaMemcpyAsync", 41),
    "gpu_memset": ("cudaMemsetAsync", 51),
}
HIP_CALLS = {
    "graph": ("hipGraphLaunch", 215),
    "kernel": ("hipLaunchKernel", 107),
    "module": ("hipModuleLaunchKernel", 169),
    "extended": ("hipExtModuleLaunchKernel", 65),
    "gpu_memcpy": ("hipMemcpyAsync", 134),
    "gpu_memset": ("hipMemsetAsync", 145),
}
HIP_COPY_KINDS = {"HtoD": "1", "DtoH": "2", "DtoD": "3"}
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
    return Laid({**_header(spec), "traceEvents": events, "traceName": "trace.json"}, tuple(placed))


def us(ns: int) -> float:
    """Nanoseconds as the µs float nearest to three decimals; `round(us * 1000)` gives them back exactly."""
    return ns / 1000


def _header(spec: TraceSpec) -> dict[str, Any]:
    cuda = spec.vendor == "cuda"
    device = spec.device or default_device(spec.vendor)
    header: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [_device_properties(device, i, cuda) for i in range(spec.device_id + 1)],
    }
    if cuda:
        header |= {"cupti_version": 26, "cuda_runtime_version": 12080, "cuda_driver_version": 12080}
    else:
        header |= {
            "roctracer_version": 4.1,
            "hip_runtime_version": 70051831,
            "hip_driver_version": 70051831,
        }
    if spec.with_stack or spec.module_events or spec.engine == "vllm_python":
        header["with_stack"] = 1
    if spec.record_shapes:
        header["record_shapes"] = 1
    identity = f"{spec.model.name}/{spec.engine}/{spec.rank}/{spec.start_us}"
    return header | {
        "distributedInfo": _distributed_info(spec),
        "trace_id": hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest().upper(),
        **dict(spec.metadata),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": spec.base_time_ns,
    }


def _device_properties(device: DeviceSpec, index: int, cuda: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": index,
        "name": device.name,
        "totalGlobalMem": device.total_global_mem,
        "computeMajor": device.compute_major,
        "computeMinor": device.compute_minor,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": device.max_threads_per_multiprocessor,
        "regsPerBlock": device.regs_per_block,
        "warpSize": device.warp_size,
        "sharedMemPerBlock": device.shared_mem_per_block,
        "numSms": device.num_sms,
    }
    if not cuda:
        return properties | {"maxSharedMemoryPerMultiProcessor": device.shared_mem_per_multiprocessor}
    return properties | {
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": device.shared_mem_per_block_optin,
        "sharedMemPerMultiprocessor": device.shared_mem_per_multiprocessor,
    }


def _distributed_info(spec: TraceSpec) -> dict[str, Any]:
    ranks = list(range(spec.world_size))
    groups = [("0", "default_pg", "cuda:nccl"), ("1", "undefined", "cuda:nccl")]
    groups.append(("2", "undefined", "cpu:gloo,cuda:gloo"))
    return {
        "backend": "nccl",
        "rank": spec.rank,
        "world_size": spec.world_size,
        "pg_count": len(groups),
        "pg_config": [
            {
                "pg_name": name,
                "pg_desc": description,
                "backend_config": backend,
                "pg_size": spec.world_size,
                "ranks": ranks,
            }
            for name, description, backend in groups
        ],
        "nccl_version": "2.27.7",
    }


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


def _complete(category: str, name: str, pid: int, tid: int, start_ns: int, dur_ns: int) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": us(start_ns),
        "dur": us(dur_ns),
    }


def _annotation(spec: TraceSpec, step: HostStep, index: int) -> Event:
    dur = step.marker_end_ns - step.start_ns
    event = _complete("user_annotation", step.label or "", spec.pid, spec.pid, step.start_ns, dur)
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
    event = _complete("cpu_op", launch.op or "", spec.pid, spec.pid, launch.op_start_ns, launch.op_dur_ns)
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
    event = _complete("python_function", frame.name, spec.pid, spec.pid, frame.start_ns, frame.end_ns - frame.start_ns)
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
            yield _device_event(spec, record), record
            yield _flow_end(correlation, spec.device_id, record.stream, record.start_ns), None
        if correlation in calls:
            call = calls[correlation]
            yield _runtime_call(spec, call), None
            if call.graph and spec.vendor == "rocm":
                yield _flow_end(correlation, spec.pid, spec.pid, call.start_ns), None
            else:
                yield _flow_start(correlation, spec.pid, call.start_ns), None


def _flow_start(correlation: int, pid: int, ns: int) -> Event:
    return {
        "ph": "s",
        "id": correlation,
        "pid": pid,
        "tid": pid,
        "ts": us(ns),
        "cat": "ac2g",
        "name": "ac2g",
    }


def _flow_end(correlation: int, pid: int, tid: int, ns: int) -> Event:
    return {
        "ph": "f",
        "id": correlation,
        "pid": pid,
        "tid": tid,
        "ts": us(ns),
        "cat": "ac2g",
        "name": "ac2g",
        "bp": "e",
    }


def _call_of(spec: TraceSpec, launch: HostLaunch) -> tuple[str, int]:
    calls = CUDA_CALLS if spec.vendor == "cuda" else HIP_CALLS
    if launch.graph:
        return calls["graph"]
    kernel = launch.launched[0]
    if kernel.category != "kernel":
        return calls[kernel.category]
    if kernel.name.startswith(("Cijk_", "nvjet")):
        return calls["extended"]
    if spec.vendor == "rocm" and " " not in kernel.name:
        return calls["module"]
    return calls["kernel"]


def _runtime_call(spec: TraceSpec, launch: HostLaunch) -> Event:
    name, number = _call_of(spec, launch)
    args: dict[str, Any] = {} if launch.external_id is None else {"External id": launch.external_id}
    if spec.vendor == "cuda":
        args |= {"cbid": number, "correlation": launch.correlation}
    else:
        args |= _hip_args(name, number, launch)
    event = _complete("cuda_runtime", name, spec.pid, spec.pid, launch.start_ns, launch.dur_ns)
    return event | {"args": args}


def _hip_args(name: str, number: int, launch: HostLaunch) -> dict[str, Any]:
    kernel = launch.launched[0]
    args: dict[str, Any] = {"cid": number, "correlation": launch.correlation}
    if launch.graph:
        return args
    if kernel.category == "gpu_memcpy":
        kind = HIP_COPY_KINDS[_copy_kind(kernel)]
        return args | {
            "src": f"0x{0x7F1818900000 + 512 * launch.correlation:x}",
            "dst": f"0x{0x7F14DB1A4000 + 512 * launch.correlation:x}",
            "bytes": str(kernel.bytes),
            "kind": kind,
        }
    if kernel.category == "gpu_memset":
        return args
    grid, block = _launch_dims(kernel, name)
    return {
        "kernel": kernel.name,
        **args,
        "grid": list(grid),
        "block": list(block),
        "shared memory": 0,
    }


def _launch_dims(kernel: KernelSpec, call: str) -> tuple[Dim, Dim]:
    """Grid and block as the event shows them: `hipExtModuleLaunchKernel` counts work-items in the grid."""
    grid, block = kernel.grid or (1, 1, 1), kernel.block or (256, 1, 1)
    if call == "hipExtModuleLaunchKernel":
        grid = (grid[0] * block[0], grid[1] * block[1], grid[2] * block[2])
    return grid, block


def _copy_kind(kernel: KernelSpec) -> str:
    return next((kind for kind in HIP_COPY_KINDS if kind in kernel.name), "DtoD")


def _device_event(spec: TraceSpec, record: DeviceRecord) -> Event:
    kernel = record.spec
    event = _complete(kernel.category, kernel.name, spec.device_id, record.stream, record.start_ns, record.dur_ns)
    linked = {} if record.external_id is None else {"External id": record.external_id}
    build = _cuda_args if spec.vendor == "cuda" else _rocm_args
    return event | {"args": linked | build(spec, record, kernel.category)}


def _bandwidth(record: DeviceRecord) -> float:
    """Bytes per nanosecond are GB per second."""
    return record.spec.bytes / record.dur_ns


def _cuda_args(spec: TraceSpec, record: DeviceRecord, category: Category) -> dict[str, Any]:
    place = {
        "device": spec.device_id,
        "context": 1,
        "stream": record.stream,
        "correlation": record.correlation,
    }
    kernel = record.spec
    if category != "kernel":
        return place | {"bytes": kernel.bytes, "memory bandwidth (GB/s)": _bandwidth(record)}
    device = spec.device or default_device(spec.vendor)
    grid, block = kernel.grid or (1, 1, 1), kernel.block or (256, 1, 1)
    blocks = grid[0] * grid[1] * grid[2] / device.num_sms
    warps = blocks * (block[0] * block[1] * block[2] / device.warp_size)
    args = {
        "queued": 0,
        **place,
        "registers per thread": 32,
        "shared memory": 0,
        "blocks per SM": round(blocks, 6),
        "warps per SM": round(warps, 6),
        "grid": list(grid),
        "block": list(block),
        "est. achieved occupancy %": min(100, round(100 * warps / 64)),
    }
    if record.node is not None:
        args |= {"graph id": 3, "graph node id": record.node}
    return args


def _rocm_args(spec: TraceSpec, record: DeviceRecord, category: Category) -> dict[str, Any]:
    kernel = record.spec
    place: dict[str, Any] = {
        "device": spec.device_id,
        "stream": record.stream,
        "correlation": record.correlation,
    }
    if category == "gpu_memcpy":
        return place | {
            "kind": _copy_kind(kernel),
            "bytes": kernel.bytes,
            "memory bandwidth (GB/s)": _bandwidth(record),
        }
    if category == "gpu_memset":
        return place | {"kind": "FillBuffer", "bytes": kernel.bytes}
    place["kind"] = "Dispatch Kernel"
    if record.node is not None:
        return place
    call = HIP_CALLS["extended"][0] if kernel.name.startswith("Cijk_") else HIP_CALLS["kernel"][0]
    grid, block = _launch_dims(kernel, call)
    return place | {"grid": list(grid), "block": list(block)}


def _has_gpu_annotations(spec: TraceSpec) -> bool:
    wanted = spec.vendor == "cuda" if spec.gpu_annotations is None else spec.gpu_annotations
    return wanted and spec.engine in ANNOTATED_ENGINES


def _gpu_annotations(spec: TraceSpec, timeline: Timeline, kept: tuple[DeviceRecord, ...]) -> Iterator[Event]:
    """The marker once more on every stream that it launched work on: never a kernel."""
    for step in timeline.steps:
        own = [record for record in kept if record.step == step.index]
        for stream in sorted({record.stream for record in own}):
            records = [record for record in own if record.stream == stream]
            start = min(record.start_ns for record in records)
            end = max(record.start_ns + record.dur_ns for record in records)
            event = _complete("gpu_user_annotation", step.label or "", spec.device_id, stream, start, end - start)
            yield event | {"args": {"External id": step.external_id}}


def _closing_events(timeline: Timeline) -> Iterator[Event]:
    start = timeline.start_ns - 150_000
    yield _complete("Trace", "PyTorch Profiler (0)", 0, 0, start, timeline.end_ns - start) | {
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
