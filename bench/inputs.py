"""Build large traces for the benchmarks by replicating the events of real ones.

Every copy is shifted in time and in ids, so that nothing repeats that would not repeat in a long recording, and
is written in the layout in which torch.profiler (Kineto) writes its files.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

SHIFTED = re.compile(
    r'("(?:correlation|External id|Ev Idx|Python id|Python parent id|Record function id|id)": )(\d+)'
    r'|("ts": )(\d+)(\.\d+)?'
)
KINDS = {
    "kernels": ("gpu/qwen1.5_0.5b_hf_h100.json.gz", ("python_function",)),
    "python": ("gpu/gptoss20b_vllm_decode_mi300x.json.gz", ()),
}
"""Source below ../shared/traces and the categories left out of it, by the kind of trace wanted."""

DESCRIPTIONS = {
    "kernels": "Hugging Face Transformers on an H100, operators with shapes and kernels, no Python functions",
    "python": "vLLM decoding on an MI300X, half of the events Python functions",
}
"""What the events of a kind were recorded from."""


def build(traces: Path, kind: str, raw_bytes: int, target: Path) -> int:
    """Write a trace of about ``raw_bytes`` (uncompressed) as .json.gz or .json; return its exact size.

    Args:
        traces: the folder of real traces.
        kind: one of ``KINDS``.
        raw_bytes: size wanted; copies are written whole.
        target: the file; compressed where its name ends in .gz.
    """
    source, dropped = KINDS[kind]
    document = json.loads(gzip.decompress((traces / source).read_bytes()))
    document["traceEvents"] = [event for event in document["traceEvents"] if event.get("cat") not in dropped]
    return replicate(document, raw_bytes, target, period(document["traceEvents"]))


def period(events: Iterable[dict[str, Any]]) -> int:
    """Return how far apart in µs copies of these events must start."""
    times = [float(event["ts"]) for event in events if event.get("ph") == "X"]
    return int(max(times) - min(times)) + 100_000


def replicate(document: dict[str, Any], raw_bytes: int, target: Path, apart: int) -> int:
    """Write whole copies of a trace's events (at least one), ``apart`` µs after each other, nearest to ``raw_bytes``.

    Returns:
        The size of the text in bytes.
    """
    around = {key: value for key, value in document.items() if key != "traceEvents"}
    events: Sequence[dict[str, Any]] = document["traceEvents"]
    head = "{\n  " + json.dumps(around)[1:-1] + ',\n  "traceEvents": [\n'
    body = ",\n".join(kineto_text(event) for event in events)
    written = 0
    unfinished = target.with_name(f"unfinished-{target.name}")
    with _open(unfinished) as out:
        written += out.write(head.encode())
        for piece in _copies(body, apart, _stride(events)):
            if written > len(head) and written + len(piece) / 2 > raw_bytes:
                break
            written += out.write(piece)
        written += out.write(b'\n  ],\n  "traceName": "trace.json"\n}\n')
    unfinished.replace(target)
    return written


def _stride(events: Iterable[dict[str, Any]]) -> int:
    ids = ("correlation", "External id", "Ev Idx")
    return 10 + max(
        (int(value) for event in events for key, value in (event.get("args") or {}).items() if key in ids), default=0
    )


def kineto_text(event: dict[str, Any]) -> str:
    """Return an event as Kineto's output_json writes it."""
    first = ", ".join(
        f"{json.dumps(k)}: {json.dumps(event[k])}" for k in ("ph", "cat", "name", "pid", "tid") if k in event
    )
    times = ", ".join(f'"{k}": {event[k]:.3f}' for k in ("ts", "dur") if k in event)
    rest = "".join(f", {json.dumps(k)}: {json.dumps(event[k])}" for k in ("id", "s", "bp") if k in event)
    args = event.get("args")
    if args is None:
        return f"  {{\n    {first},\n    {times}{rest}\n  }}"
    inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in args.items())
    return f'  {{\n    {first},\n    {times}{rest},\n    "args": {{\n      {inner}\n    }}\n  }}'


def _copies(body: str, apart: int, stride: int) -> Iterator[bytes]:
    copy = 0
    while True:

        def shift(match: re.Match[str], copy: int = copy) -> str:
            if match[1]:
                return f"{match[1]}{int(match[2]) + copy * stride}"
            return f"{match[3]}{int(match[4]) + copy * apart}{match[5] or ''}"

        text = body if copy == 0 else ",\n" + SHIFTED.sub(shift, body)
        yield text.encode()
        copy += 1


def _open(target: Path) -> BinaryIO:
    if target.suffix == ".gz":
        # No time in the header: the same call writes the same bytes, and the store's key is made of them.
        return gzip.GzipFile(target, "wb", compresslevel=6, mtime=0)  # type: ignore[return-value]
    return target.open("wb")
