"""Build large traces for the benchmarks by replicating the events of real ones.

Every copy is shifted in time and in ids, so that nothing repeats that would not repeat in a long recording, and
is written in the layout in which torch.profiler (Kineto) writes its files.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

SHIFTED = re.compile(
    r'("(?:correlation|External id|Ev Idx|Python id|Python parent id|Record function id|id)": )(\d+)'
    r'|("ts": )(\d+)(\.\d+)?'
)
KINDS = {
    "kernels": ("gpu/qwen1.5_0.5b_hf_h100.json.gz", ("python_function",)),
    "python": ("cpu/qwen3_24_vllm_eager_stack.json.gz", ()),
}
"""Source below ../shared/traces and the categories left out of it, by the kind of trace wanted."""


def build(traces: Path, kind: str, raw_bytes: int, target: Path) -> int:
    """Write a trace of about ``raw_bytes`` (uncompressed) as .json.gz or .json; return its exact size."""
    source, dropped = KINDS[kind]
    document = json.loads(gzip.decompress((traces / source).read_bytes()))
    events = [event for event in document.pop("traceEvents") if event.get("cat") not in dropped]
    head = "{\n  " + json.dumps(document)[1:-1] + ',\n  "traceEvents": [\n'
    body = ",\n".join(kineto_text(event) for event in events)
    times = [float(event["ts"]) for event in events if event.get("ph") == "X"]
    period = int(max(times) - min(times)) + 100_000
    stride = 10 + max(
        (
            int(v)
            for e in events
            for k, v in (e.get("args") or {}).items()
            if k in {"correlation", "External id", "Ev Idx"}
        ),
        default=0,
    )
    written = 0
    with _open(target) as out:
        written += out.write(head.encode())
        for piece in _copies(body, period, stride):
            written += out.write(piece)
            if written >= raw_bytes:
                break
        written += out.write(b'\n  ],\n  "traceName": "trace.json"\n}\n')
    return written


def kineto_text(event: dict[str, Any]) -> str:
    """Return an event as Kineto's output_json writes it."""
    first = ", ".join(
        f"{json.dumps(k)}: {_value(k, event[k])}" for k in ("ph", "cat", "name", "pid", "tid") if k in event
    )
    times = ", ".join(f'"{k}": {event[k]:.3f}' for k in ("ts", "dur") if k in event)
    rest = "".join(f", {json.dumps(k)}: {json.dumps(event[k])}" for k in ("id", "s", "bp") if k in event)
    args = event.get("args")
    if args is None:
        return f"  {{\n    {first},\n    {times}{rest}\n  }}"
    inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in args.items())
    return f'  {{\n    {first},\n    {times}{rest},\n    "args": {{\n      {inner}\n    }}\n  }}'


def _value(_key: str, value: Any) -> str:
    return json.dumps(value)


def _copies(body: str, period: int, stride: int) -> Iterator[bytes]:
    copy = 0
    while True:

        def shift(match: re.Match[str], copy: int = copy) -> str:
            if match[1]:
                return f"{match[1]}{int(match[2]) + copy * stride}"
            return f"{match[3]}{int(match[4]) + copy * period}{match[5] or ''}"

        text = body if copy == 0 else ",\n" + SHIFTED.sub(shift, body)
        yield text.encode()
        copy += 1


def _open(target: Path) -> BinaryIO:
    if target.suffix == ".gz":
        return gzip.open(target, "wb", compresslevel=6)  # type: ignore[return-value]
    return target.open("wb")
