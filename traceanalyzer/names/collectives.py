"""What a communication kernel does: from its arguments where the trace has them, else from its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceanalyzer.names import parse

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "dispatch",
    "combine",
    "send_recv",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
    "unknown",
)
"""Kinds of collectives. ``dispatch`` and ``combine`` exchange tokens with experts; ``send_recv`` is point to point;
``unknown`` is a communication kernel that does not tell (RCCL's generic kernel, for one)."""

_PATTERNS = (
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_to_all", r"all_?(?:to|2)_?all"),
    ("dispatch", r"dispatch"),
    ("combine", r"combine"),
    ("all_gather", r"all_?gather|allgather"),
    ("all_reduce", r"all_?reduce|cross_device_reduce|allreduce|two_?shot|one_?shot|lamport"),
    ("send_recv", r"send_?recv|send|recv"),
    ("broadcast", r"broadcast|(?<![a-z])bcast"),
    ("barrier", r"barrier"),
    ("reduce", r"(?:nccl|rccl|gloo|c10d)\w*[:_]+(?:\w*_)?reduce"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
_SIGNATURE = re.compile(r"[(].*", re.DOTALL)

NOT_A_TRANSFER = re.compile(r"notify_dispatch|cached_notify|get_dispatch_layout|clean_low_latency|wait_tensor")
"""Kernels that prepare an exchange but move no tokens."""


@dataclass(frozen=True)
class Collective:
    """The reading of one communication kernel.

    Attributes:
        kind: one of COLLECTIVES.
        direction: ``send`` or ``recv`` of a point-to-point transfer, where known.
        library: who wrote the kernel, where the name tells.
    """

    kind: str
    direction: str | None
    library: str | None


def collective(name: str, stated: str | None = None) -> Collective | None:
    """Read a kernel's name; return ``None`` where it is not a communication kernel.

    Args:
        name: of the kernel.
        stated: its ``Collective name`` argument, which is believed before the name.
    """
    parsed = parse(name)
    if parsed.kind != "communication":
        return None
    told = None if stated is None else _kind(stated.lower())
    kind = told if told not in (None, "unknown") else _kind(_body(name))
    direction = stated.lower() if stated is not None and stated.lower() in {"send", "recv"} else None
    return Collective(kind or "unknown", direction, parsed.library)


def _body(name: str) -> str:
    """Return the name without signature and template arguments, which say types and not the collective."""
    text = name.lower()
    for prefix in ("void ", "__global__ "):
        text = text.removeprefix(prefix)
    return _SIGNATURE.sub("", re.sub(r"<.*", "", text, flags=re.DOTALL)) or text


def _kind(text: str) -> str:
    if NOT_A_TRANSFER.search(text):
        return "barrier"
    return next((kind for kind, pattern in _COMPILED if pattern.search(text)), "unknown")


_DTYPES_OF_BYTES = {
    8: ("double", "float64", "long", "long int", "int64"),
    4: ("float", "float32", "int", "int32"),
    2: ("bfloat16", "half", "float16", "short", "int16"),
    1: ("char", "signed char", "unsigned char", "byte", "int8", "uint8", "bool"),
}
DTYPE_BYTES = {name: size for size, names in _DTYPES_OF_BYTES.items() for name in names}
"""Bytes of an element by the names that PyTorch's profiler writes, in lower case."""


def dtype_bytes(dtype: str | None) -> int | None:
    """Return the bytes of an element of a type; ``None`` where the name is unknown."""
    if dtype is None:
        return None
    name = dtype.lower().removeprefix("c10::").removeprefix("torch.")
    return 1 if name.startswith("float8") else DTYPE_BYTES.get(name)


def bus_factor(kind: str, size: int) -> float | None:
    """Bytes on the slowest link over bytes of the message, for a group of ``size`` (as nccl-tests define busbw).

    The message is the larger side of the call: what a rank holds in all after an all-gather, before a
    reduce-scatter or an all-to-all.
    """
    if size < 2:
        return None
    if kind == "all_reduce":
        return 2 * (size - 1) / size
    if kind in {"all_gather", "reduce_scatter", "all_to_all"}:
        return (size - 1) / size
    if kind in {"send_recv", "broadcast", "reduce"}:
        return 1.0
    return None
