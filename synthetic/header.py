"""The file-wide part of a trace: devices, versions, ranks."""

from __future__ import annotations

import hashlib
from typing import Any

from synthetic.devices import default_device
from synthetic.spec import DeviceSpec, TraceSpec


def header(spec: TraceSpec) -> dict[str, Any]:
    """Every key of the document but its events, in the order that the profiler writes them."""
    cuda = spec.vendor == "cuda"
    device = spec.device or default_device(spec.vendor)
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [_device_properties(device, i, cuda) for i in range(spec.device_id + 1)],
    }
    if cuda:
        head |= {"cupti_version": 26, "cuda_runtime_version": 12080, "cuda_driver_version": 12080}
    else:
        head |= {
            "roctracer_version": 4.1,
            "hip_runtime_version": 70051831,
            "hip_driver_version": 70051831,
        }
    if spec.with_stack or spec.module_events or spec.engine == "vllm_python":
        head["with_stack"] = 1
    if spec.record_shapes:
        head["record_shapes"] = 1
    identity = f"{spec.model.name}/{spec.engine}/{spec.rank}/{spec.start_us}"
    return head | {
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
