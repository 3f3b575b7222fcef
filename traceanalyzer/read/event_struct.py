"""The shape of one event in the file, as the JSON decoder fills it.

Only what the store keeps is named; every other key is skipped by the decoder without making an object of it.
Values that are kept as text (shapes, grids) arrive as raw JSON.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

Scalar: TypeAlias = int | float | str | bool | None
Label: TypeAlias = int | float | str | None
"""What categories, names, processes and threads are written as (a truth value is none: it would equal 1 or 0)."""

INTEGERS = ("device", "stream", "bytes", "registers", "shared_memory", "graph_id", "graph_node")
"""Args that become integer columns."""

IDS = ("correlation", "external_id")
"""Args that become unsigned 64-bit columns, whatever their size in the file."""

TEXTS = ("grid", "thread_block", "input_dims", "input_types", "concrete_inputs")
"""Args kept as JSON text."""

ARG_KEYS: dict[str, str] = {
    "device": "device",
    "stream": "stream",
    "bytes": "bytes",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "graph_id": "graph id",
    "graph_node": "graph node id",
    "correlation": "correlation",
    "external_id": "External id",
    "grid": "grid",
    "thread_block": "block",
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "concrete_inputs": "Concrete Inputs",
    "kernel": "kernel",
    "old_external_id": "external id",
    "old_correlation": "Correlation",
    "old_input_dims": "Input dims",
    "label": "name",
    "labels": "labels",
}
"""Field of ``Args`` and the key in the file; ``old_`` marks a spelling of older versions."""

COLLECTIVE_KEYS = (
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "In split size",
    "Out split size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Src Rank",
    "Dst Rank",
    "Seq",
    "Comms Id",
)
TRITON_KEYS = ("kernel_backend", "kernel_file", "kernel_hash", "kernel_name", "num_warps", "num_stages")
NOTE_KEYS = ("fqn_map", "module_fqn", "str", "name")
"""What PyTorch's annotations of graph nodes add to the args of a kernel."""
EXTRA_KEYS = {f"extra_{number}": key for number, key in enumerate((*COLLECTIVE_KEYS, *TRITON_KEYS, *NOTE_KEYS))}
"""Args that are copied to the column ``extra`` where one of the marker keys below is present."""

EXTRA_MARKERS = tuple(field for field, key in EXTRA_KEYS.items() if key in {"Collective name", "kernel_backend"})
NOTE_MARKERS = tuple(field for field, key in EXTRA_KEYS.items() if key in NOTE_KEYS)
"""Markers that kernels alone have."""

OLDER = {"correlation": "old_correlation", "external_id": "old_external_id", "input_dims": "old_input_dims"}
"""Field of today's spelling and of the one that older versions used."""

PAIRS = "pairs"
METADATA = "metadata"
DEVICE_ARGS = (
    "external_id",
    "device",
    "stream",
    "correlation",
    "bytes",
    "registers",
    "shared_memory",
    "grid",
    "thread_block",
    "graph_id",
    "graph_node",
    "old_external_id",
    "old_correlation",
    *EXTRA_MARKERS,
    *NOTE_MARKERS,
)
LAUNCH_ARGS = (
    "external_id",
    "correlation",
    "kernel",
    "grid",
    "thread_block",
    "shared_memory",
    "bytes",
    "stream",
    "old_external_id",
    "old_correlation",
)
OP_ARGS = (
    "external_id",
    "concrete_inputs",
    "input_types",
    "input_dims",
    "correlation",
    "old_external_id",
    "old_correlation",
    "old_input_dims",
    *EXTRA_MARKERS,
)
ANY_ARGS = (*(name for name in ARG_KEYS if name not in {"label", "labels"}), *EXTRA_MARKERS)
ARGS_OF_GROUP: dict[str, tuple[str, ...]] = {
    "device": DEVICE_ARGS,
    "launch": LAUNCH_ARGS,
    "op": OP_ARGS,
    "python": (),
    "other": ANY_ARGS,
    PAIRS: ANY_ARGS,
    METADATA: ("label",),
}
"""Args that events of a group can have, in the order in which they are mostly written: looking for others in every
event, and making objects of them, would cost time."""

NULL = Raw(b"null")


def _args_type(name: str, fields: tuple[str, ...]) -> Any:
    keys = ARG_KEYS | EXTRA_KEYS
    types: list[tuple[str, object, object]] = []
    for each in fields:
        raw = each in RAW_ARGS
        default = msgspec.field(name=keys[each], default=NULL if raw else None)
        types.append((each, Raw if raw else Label if each == "kernel" else Scalar, default))
    return msgspec.defstruct(name, types, gc=False)


RAW_ARGS = frozenset({*TEXTS, "old_input_dims", *EXTRA_KEYS})
"""Args that arrive as raw JSON, ``null`` where they are missing."""

Args = _args_type("Args", (*ARG_KEYS, *(field for field, key in EXTRA_KEYS.items() if key not in ARG_KEYS.values())))
"""All args that are kept from any event."""

Extra = _args_type("Extra", tuple(EXTRA_KEYS))
"""The args that the column ``extra`` is made of."""

GROUP_ARGS = {group: _args_type(f"{group.title()}Args", fields) for group, fields in ARGS_OF_GROUP.items()}


class Event(msgspec.Struct, gc=False):
    """One element of the event list. The args stay as written until it is known which of them are wanted."""

    ph: str | None = None
    cat: Label = None
    name: Label = None
    pid: Label = None
    tid: Label = None
    ts: float | str | None = None
    dur: float | str | None = None
    args: Raw = NULL


NO_RAW = cast(Raw, None)
"""Default of raw times: the decoder knows raw values by the type ``Raw`` alone, not ``Raw | None``."""


class ExactEvent(msgspec.Struct, gc=False):
    """The same with times as written, for files whose times exceed what a float holds to the nanosecond."""

    ph: str | None = None
    cat: Label = None
    name: Label = None
    pid: Label = None
    tid: Label = None
    ts: Raw = NO_RAW
    dur: Raw = NO_RAW
    args: Raw = NULL
