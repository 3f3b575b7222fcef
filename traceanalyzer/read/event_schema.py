"""The columns every ingested trace has, whatever wrote the file."""

from __future__ import annotations

import re

import polars as pl

SCHEMA_VERSION = 7
"""Raised whenever a column changes its name or meaning: caches of an older version are not read."""

EVENT_SCHEMA: dict[str, pl.DataType] = {
    "index": pl.Int64(),  # position in the file's event list
    "cat": pl.Categorical(),  # category in today's spelling: kernel, gpu_memcpy, cuda_runtime, cpu_op, ...
    "name": pl.Categorical(),  # of the kernel, operator, call or range; null where the file has none
    "pid": pl.Categorical(),  # process or GPU, as text: files mix integers, strings, '' and negative numbers
    "tid": pl.Categorical(),  # thread, or stream of a GPU, as text
    "start_ns": pl.Int64(),  # relative to TraceMetadata.base_ns once a trace is opened; file clock in the store
    "dur_ns": pl.Int64(),  # from start to end
    "device": pl.Int32(),  # number of the GPU; null on the host
    "stream": pl.Int64(),  # of the GPU; null on the host
    "correlation": pl.UInt64(),  # ties an event to its launch; ids beyond 64 bit are replaced, see oversize_ids
    "external_id": pl.UInt64(),  # ties an event to the operator that it ran for
    "grid": pl.Categorical(),  # JSON text, such as [304, 1, 1]
    "thread_block": pl.Categorical(),  # threads in each dimension; the name `block` is a transformer block
    "input_dims": pl.Categorical(),  # shapes of an operator's inputs as JSON text, where recorded
    "input_types": pl.Categorical(),  # their types as JSON text
    "concrete_inputs": pl.Categorical(),  # values of its scalar inputs as JSON text
    "launched_kernel": pl.Categorical(),  # kernel name that an AMD launch event carries
    "bytes": pl.Int64(),  # that a copy or memset moves
    "extra": pl.Categorical(),  # JSON text of other args worth keeping (collectives, Triton launches, graph nodes)
    "registers": pl.Int32(),  # per thread
    "shared_memory": pl.Int64(),  # bytes per block, static and dynamic
    "graph_id": pl.Int64(),  # CUDA graph that launched the kernel
    "graph_node": pl.Int64(),  # node of that graph
}
"""One row is one complete event (phase X, or a begin/end pair joined). Missing values are null."""

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of work on a GPU; gpu_user_annotation only labels it and is not among them."""

ACCELERATORS = ("xpu", "hpu", "npu", "mlu", "gcu", "musa", "mtia", "privateuse1")
"""Devices other than GPUs of NVIDIA and AMD, as profilers prefix their categories. Source: ActivityType of Kineto
(xpu, hpu, mtia, privateuse1) and of the forks that vendors ship (npu, mlu, gcu, musa)."""

LAUNCH_CATEGORIES = (
    *("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"),
    *(f"{name}_{kind}" for name in ACCELERATORS for kind in ("runtime", "driver")),
)
"""Categories of host calls that start work on a GPU or another accelerator."""

CATEGORY_SPELLINGS = {
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "driver": "cuda_driver",
}
"""Spellings of old Kineto versions (compared in lower case) and the name used today."""

KNOWN_CATEGORIES = frozenset(
    {*DEVICE_CATEGORIES, *LAUNCH_CATEGORIES, "cpu_op", "python_function", "user_annotation", "gpu_user_annotation"}
)
"""Categories that analyses look for: other capitals of these are folded into them."""

_ACCELERATOR = re.compile(rf"({'|'.join(ACCELERATORS)})_(.+)")
_OF_ACCELERATORS = {
    "kernel": "kernel",
    "kernels": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "user_annotation": "gpu_user_annotation",
}
"""What follows an accelerator's prefix, and the category of GPUs that means the same."""

GROUPS: dict[str, tuple[str, ...]] = {
    "device": DEVICE_CATEGORIES,
    "launch": (*LAUNCH_CATEGORIES, "user_annotation"),
    "op": ("cpu_op",),
    "python": ("python_function",),
    "other": (),
}
"""Files of a store and the categories in them (``other`` holds the rest), so that a reader opens only what it needs."""


def today(category: str) -> str:
    """Return today's spelling of a category; an accelerator's kernels and copies are called as a GPU's."""
    folded = category.lower()
    accelerator = _ACCELERATOR.fullmatch(folded)
    if accelerator is not None:
        return _OF_ACCELERATORS.get(accelerator[2], folded)
    return CATEGORY_SPELLINGS.get(folded, folded if folded in KNOWN_CATEGORIES else category)


def accelerator_of(category: str | None) -> tuple[str, str] | None:
    """Return the accelerator that a category is of and what it holds, as (mtia, ccp_events); None of others."""
    match = _ACCELERATOR.fullmatch(category or "")
    return None if match is None else (match[1], match[2])


def group_of(category: str | None) -> str:
    """Return the group of files that a category's events are stored in."""
    return next((group for group, categories in GROUPS.items() if category in categories), "other")
