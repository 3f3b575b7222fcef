"""How many bytes are copied for a byte of text on the way from the file to Parquet.

What each step copies is counted on a real file by watching the steps; where that depends on who decodes a window (this
process or a worker), it is given for a window that goes to a worker.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WATCHED_WINDOWS = 8
"""Windows that decoding is watched on; the numbers vary little between windows."""


@dataclass(frozen=True)
class Step:
    """One copy.

    Attributes:
        step: what happens.
        source, target: from where to where.
        per_raw_byte: bytes written at the target for a byte of text.
        who: which code does it.
    """

    step: str
    source: str
    target: str
    per_raw_byte: float
    who: str


def copies(path: Path) -> list[dict[str, Any]]:
    """Return the steps of reading a .json.gz, in order."""
    raw, joined, cut, windows = _watched_cutting(path)
    stored = path.stat().st_size
    text = sum(len(window.data) for window in windows)
    chunks, args, objects, rows, files = _watched_decoding(windows)
    return [
        asdict(step)
        for step in (
            Step("read", "file", "block of 64 KiB", stored / raw, "file.read"),
            Step("decompress", "block of 64 KiB", "block of up to 1 MiB", 1.0, "isal"),
            Step("collect", "blocks", "buffer of a window", joined / raw, "bytes.join, TraceText"),
            Step("cut", "buffer", "rest of the buffer, for the next window", cut / raw, "slices of bytes, TraceText"),
            Step("send", "window", "pipe to a worker", 1.0, "write, the kernel copies"),
            Step("receive", "pipe", "window in the worker", 1.0, "read, the kernel copies"),
            Step("chunk", "window", "list of 512 KiB in brackets", chunks / text, "bytes.join, as_list"),
            Step("decode", "list", "Python objects: names, times, structs", objects / text, "msgspec"),
            Step("args", "args of a group, still text", "list in brackets", args / text, "bytes.join, _decode_args"),
            Step("columns", "Python objects", "Arrow columns", rows / text, "polars.Series"),
            Step("encode", "Arrow columns", "Parquet file", files / text, "write_parquet, zstd"),
        )
    ]


def _watched_cutting(path: Path) -> tuple[int, int, int, list[Any]]:
    """Return bytes of text, bytes joined, bytes sliced, and the first windows."""
    from traceanalyzer.read import inputs
    from traceanalyzer.read.streaming import WINDOW_BYTES
    from traceanalyzer.read.trace_text import TraceText

    class Watched(TraceText):
        joined = 0
        sliced = 0

        def _fill(self, size: int) -> bool:
            before = self._buffer
            found = super()._fill(size)
            if self._buffer is not before:
                self.joined += len(self._buffer)
            return found

        def _drop(self, size: int) -> None:
            super()._drop(size)
            self.sliced += len(self._buffer) if size else 0

    windows: list[Any] = []
    with inputs.opened(str(path)) as plain:
        plain.peel()
        document = Watched(plain, WINDOW_BYTES, careful=False, count_lines=False)
        for window in document.windows():
            if len(windows) < WATCHED_WINDOWS:
                windows.append(window)
    return document.text_bytes, document.joined, document.sliced, windows


def _watched_decoding(windows: list[Any]) -> tuple[int, int, int, int, int]:
    """Return bytes of chunks, of joined args, of objects, of columns and of Parquet files."""
    from traceanalyzer.read.decode import EVENTS, EventWords, _chunks, decode_text
    from traceanalyzer.read.window import PartWriter

    chunks = args = objects = rows = 0
    words = EventWords()
    with tempfile.TemporaryDirectory() as folder:
        writer = PartWriter(Path(folder), "b")
        for window in windows:
            for text in _chunks(window.buffer, window.size):
                chunks += len(text)
                tracemalloc.start()
                events = EVENTS.decode(text)
                objects += tracemalloc.get_traced_memory()[0]
                tracemalloc.stop()
                args += sum(len(bytes(event.args)) + 1 for event in events)
            frames = decode_text(window.buffer, words, exact=False, size=window.size).frames
            rows += sum(int(frame.estimated_size()) for frame in frames.values())
            writer.add(frames)
        writer.flush()
        files = sum(file.stat().st_size for file in Path(folder).iterdir())
    return chunks, args, objects, rows, files
