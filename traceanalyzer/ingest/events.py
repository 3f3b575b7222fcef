"""The shape of one event in the file, as the JSON decoder fills it.

Only what the store keeps is named; every other key is skipped by the decoder without making an object of it.
Values that are kept as text (shapes, grids) arrive as raw JSON.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import msgspec
from msgspec import Raw

Scalar: TypeAlias = int | float | str | bool | None

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
EXTRA_KEYS = {f"extra_{number}": key for number, key in enumerate((*COLLECTIVE_KEYS, *TRITON_KEYS))}
"""Args that are copied to the column ``extra`` where one of the marker keys below is present."""

EXTRA_MARKERS = tuple(field for field, key in EXTRA_KEYS.items() if key in {"Collective name", "kernel_backend"})


def _args_fields() -> list[tuple[str, object, object]]:
    fields: list[tuple[str, object, object]] = []
    for name, key in (*ARG_KEYS.items(), *EXTRA_KEYS.items()):
        raw = name in TEXTS or name == "old_input_dims" or name in EXTRA_KEYS
        fields.append((name, Raw if raw else Scalar, msgspec.field(name=key, default=None)))
    return fields


class ArgsType(msgspec.Struct, gc=False):
    """The args of an event (fields of ``ARG_KEYS`` and ``EXTRA_KEYS`` are added below)."""


Args = cast(type[ArgsType], msgspec.defstruct("Args", _args_fields(), bases=(ArgsType,), gc=False))


class Event(msgspec.Struct, gc=False):
    """One element of the event list."""

    ph: str | None = None
    cat: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: float | str | None = None
    dur: float | str | None = None
    args: Args | None = None  # type: ignore[valid-type]


NO_RAW = cast(Raw, None)
"""Default of raw fields: the decoder knows raw values by the type ``Raw`` alone, not ``Raw | None``."""


class ExactEvent(msgspec.Struct, gc=False):
    """The same with times as written, for files whose times exceed what a float holds to the nanosecond."""

    ph: str | None = None
    cat: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Raw = NO_RAW
    dur: Raw = NO_RAW
    args: Args | None = None  # type: ignore[valid-type]
