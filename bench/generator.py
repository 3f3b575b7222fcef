"""A trace of any size, written as fast as a pipe takes it: ``python -m bench.generator --size MB --truth FILE``.

The events of a real trace are written again and again in Kineto's layout, each copy later and with
ids of its own; nothing is stored. What the text holds is counted while it is written, and left in the truth file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bench.environment import ROOT
from bench.inputs import KINDS, SHIFTED, kineto_text, period

FIRST_US = 1_000_000_000_000
"""Start of the first event: copies add to it without another digit, so that every copy has the same length."""

FIRST_ID = 1_000_000_000
LAST_US = 2**43
"""Where a float of microseconds ends to be exact to the nanosecond."""


@dataclass
class Truth:
    """What was written.

    Attributes:
        text_bytes: of JSON, before compression.
        events: elements of the event list.
        kernels: kernel events.
        gpu_ns: sum of their durations.
        by_name: (count, ns) of kernels by name.
    """

    text_bytes: int = 0
    events: int = 0
    kernels: int = 0
    gpu_ns: int = 0
    by_name: dict[str, tuple[int, int]] = field(default_factory=dict)


class Source:
    """The events of a real trace as text whose times and ids can be moved.

    Args:
        document: a trace as decoded.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._around = {key: value for key, value in document.items() if key != "traceEvents"}
        self._events: list[dict[str, Any]] = document["traceEvents"]
        self._apart = period(self._events)
        text = ",\n".join(kineto_text(event) for event in self._events) + ",\n"
        first = min(int(found[4]) for found in SHIFTED.finditer(text) if found[3])

        def widened(found: re.Match[str]) -> str:
            if found[1]:
                return f"{found[1]}{FIRST_ID + int(found[2]) % FIRST_ID}"
            return f"{found[3]}{FIRST_US + int(found[4]) - first}{found[5] or ''}"

        self._text = np.frombuffer(SHIFTED.sub(widened, text).encode(), dtype=np.uint8).copy()
        id_at, time_at, ids, times = [], [], [], []
        for found in re.finditer(SHIFTED.pattern.encode(), self._text.tobytes()):
            if found[1]:
                id_at.append(found.start(2))
                ids.append(int(found[2]))
            else:
                time_at.append(found.start(4))
                times.append(int(found[4]))
        self._fields = (_Field(id_at, ids, len(str(FIRST_ID))), _Field(time_at, times, len(str(FIRST_US))))
        self._steps = (max(ids, default=FIRST_ID) - FIRST_ID + 1, self._apart)

    @property
    def head(self) -> bytes:
        """Text before the events."""
        return ("{\n  " + json.dumps(self._around)[1:-1] + ',\n  "traceEvents": [\n').encode()

    @property
    def tail(self) -> bytes:
        """Text after the last event, whose comma was taken off."""
        return b'\n  ],\n  "traceName": "trace.json"\n}\n'

    def copies(self) -> Iterator[bytes]:
        """Yield the events again and again, a comma after each."""
        most = min((LAST_US - FIRST_US) // self._apart, 9 * FIRST_ID // self._steps[0])
        for copy in range(most):
            for each, step in zip(self._fields, self._steps, strict=True):
                each.write(self._text, copy * step)
            yield self._text.tobytes()

    @cached_property
    def count(self) -> Truth:
        """What one copy holds."""
        kernels = [event for event in self._events if event.get("cat") == "kernel" and event.get("ph") == "X"]
        number: Counter[str] = Counter(event["name"] for event in kernels)
        ns: Counter[str] = Counter()
        for event in kernels:
            ns[event["name"]] += int(f"{event['dur']:.3f}".replace(".", ""))
        by_name = {name: (number[name], ns[name]) for name in number}
        return Truth(len(self._text), len(self._events), len(kernels), sum(ns.values()), by_name)


class _Field:
    """Numbers of one width in a text.

    Args:
        at: where each begins.
        values: what they are in the first copy.
        width: their digits.
    """

    def __init__(self, at: list[int], values: list[int], width: int) -> None:
        self._at = np.array(at, dtype=np.int64)
        self._values = np.array(values, dtype=np.int64)
        self._width = width

    def write(self, text: np.ndarray[Any, np.dtype[np.uint8]], offset: int) -> None:
        """Write every number plus an offset; it must not need more digits."""
        rest = self._values + offset
        for place in range(self._width - 1, -1, -1):
            rest, digit = np.divmod(rest, 10)
            text[self._at + place] = digit + ord("0")


def write(source: Source, raw_bytes: int, out: Callable[[bytes], object]) -> Truth:
    """Write whole copies, at least ``raw_bytes`` of text, and return what was written."""
    truth = Truth()
    one = source.count

    def put(text: bytes) -> None:
        out(text)
        truth.text_bytes += len(text)

    put(source.head)
    waiting = b""
    for copy in source.copies():
        put(waiting)
        waiting = copy
        truth.events += one.events
        truth.kernels += one.kernels
        truth.gpu_ns += one.gpu_ns
        for name, (number, ns) in one.by_name.items():
            before = truth.by_name.get(name, (0, 0))
            truth.by_name[name] = (before[0] + number, before[1] + ns)
        if truth.text_bytes + len(waiting) >= raw_bytes:
            break
    put(waiting.removesuffix(b",\n"))
    put(source.tail)
    return truth


def load(traces: Path, kind: str) -> Source:
    """Read the trace that copies of a kind are made of."""
    import gzip

    path, dropped = KINDS[kind]
    document = json.loads(gzip.decompress((traces / path).read_bytes()))
    document["traceEvents"] = [event for event in document["traceEvents"] if event.get("cat") not in dropped]
    return Source(document)


def _written(source: Source, raw_bytes: int, pipe: BinaryIO, *, packed: bool) -> Truth:
    if not packed:
        return write(source, raw_bytes, pipe.write)
    from isal import isal_zlib

    packer = isal_zlib.compressobj(2, wbits=31)
    truth = write(source, raw_bytes, lambda text: pipe.write(packer.compress(text)))
    pipe.write(packer.flush())
    return truth


def main() -> None:
    """Write to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of real traces")
    parser.add_argument("--kind", choices=KINDS, default="kernels")
    parser.add_argument("--size", type=float, required=True, help="MB of raw JSON")
    parser.add_argument("--gzip", action="store_true", help="compress what is written")
    parser.add_argument("--to", type=Path, help="file or named pipe to write to (default: standard output)")
    parser.add_argument("--truth", type=Path, required=True, help="file for what was written")
    options = parser.parse_args()
    source = load(options.traces, options.kind)
    with options.to.open("wb") if options.to else nullcontext(sys.stdout.buffer) as pipe:
        truth = _written(source, int(options.size * 1e6), pipe, packed=options.gzip)
    options.truth.write_text(json.dumps(asdict(truth)))


if __name__ == "__main__":
    main()
