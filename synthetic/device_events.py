"""Runtime calls and device events, with the arguments that each vendor's tracer gives them."""

from __future__ import annotations

from typing import Any

from synthetic.chrome import Event, complete
from synthetic.devices import default_device
from synthetic.spec import Category, Dim, KernelSpec, TraceSpec
from synthetic.timeline import DeviceRecord, HostLaunch

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


def runtime_call(spec: TraceSpec, launch: HostLaunch) -> Event:
    """The call that starts a graph, a kernel, a copy or a memset."""
    name, number = _call_of(spec, launch)
    args: dict[str, Any] = {} if launch.external_id is None else {"External id": launch.external_id}
    if spec.vendor == "cuda":
        args |= {"cbid": number, "correlation": launch.correlation}
    else:
        args |= _hip_args(name, number, launch)
    event = complete("cuda_runtime", name, spec.pid, spec.pid, launch.start_ns, launch.dur_ns)
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


def device_event(spec: TraceSpec, record: DeviceRecord) -> Event:
    """A kernel, copy or memset as it ran."""
    kernel = record.spec
    event = complete(kernel.category, kernel.name, spec.device_id, record.stream, record.start_ns, record.dur_ns)
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
