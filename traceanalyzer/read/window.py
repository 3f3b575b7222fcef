"""Decode one window, by the fast way or by salvage, and store its rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceanalyzer.read.decode import Decoded, EventWords, as_list, build, decode_events, decode_text
from traceanalyzer.read.event_schema import EVENT_SCHEMA
from traceanalyzer.read.json_borders import list_end
from traceanalyzer.read.salvage import Salvaged, salvage
from traceanalyzer.read.trace_text import Window
from traceanalyzer.read.typed_columns import NeedsExactTimes

ROWS_PER_FILE = 250_000
INDEX_BITS = 32
"""A row's ``index`` in the store's files is (window number << INDEX_BITS) + position in the window."""

COLUMNS = [*EVENT_SCHEMA, "ph"]

Place = tuple[int, "int | None"]
"""Byte offset and line (None where lines are not counted) in the decompressed file."""


class WindowReport(msgspec.Struct):
    """What a worker tells about a window besides its rows.

    Attributes:
        number: of the window.
        events: elements of the event list read from it.
        bad_device, bad_host: how many complete events had no usable times; ``_at``: where the first stood.
        repaired: what was mended -> (events, first place).
        lost: places of pieces that could not be read.
        head, tail: unreadable text at the window's ends, see Salvaged.
        oversize: (file, column, row, text) of ids that do not fit.
        list_ended: the event list ends within the window, which nobody expected; nothing of it was stored.
    """

    number: int
    list_ended: bool = False
    events: int = 0
    bad_device: int = 0
    bad_device_at: Place | None = None
    bad_host: int = 0
    bad_host_at: Place | None = None
    repaired: dict[str, tuple[int, Place]] = {}
    lost: list[Place] = []
    head: bytes | None = None
    tail: bytes | None = None
    oversize: list[tuple[str, str, int, str]] = []
    process_names: dict[str, str] = {}
    thread_names: dict[str, str] = {}


class PartWriter:
    """Collects rows by group and writes files of some hundred thousand each; columns without any value are left out."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._directory = directory
        self._prefix = prefix
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._rows: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def place(self, group: str) -> tuple[str, int]:
        """Return the file and row that the next row of a group goes to."""
        return self._name(group), self._rows.get(group, 0)

    def add(self, frames: dict[str, pl.DataFrame]) -> None:
        """Take a window's rows."""
        for group, frame in frames.items():
            self._frames.setdefault(group, []).append(frame)
            self._rows[group] = self._rows.get(group, 0) + frame.height
        if sum(self._rows.values()) >= ROWS_PER_FILE:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        for group, frames in self._frames.items():
            path = self._directory / self._name(group)
            rows = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")
            rows = rows.select([name for name in COLUMNS if name in rows.columns])
            rows.write_parquet(path, compression="zstd", compression_level=1)
            self._files[group] = self._files.get(group, 0) + 1
        self._frames, self._rows = {}, {}

    def _name(self, group: str) -> str:
        return f"{group}-{self._prefix}{self._files.get(group, 0):05d}.parquet"


class WindowDecoder:
    """Decodes windows of one trace; remembers when a trace needs its times read from the text."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer = writer
        self._words = EventWords()
        self._exact = False

    def decode(self, window: Window) -> WindowReport:
        """Store a window's rows and report on it."""
        with _no_garbage_collection():
            try:
                return self._decode(window)
            except NeedsExactTimes:
                self._exact = True
                return self._decode(window)

    def _decode(self, window: Window) -> WindowReport:
        first_index = window.number << INDEX_BITS
        salvaged = Salvaged()
        try:
            decoded = decode_text(
                window.buffer, self._words, exact=self._exact, first_index=first_index, size=window.size
            )
        except (msgspec.DecodeError, RecursionError, ValueError):
            data = window.data
            if not window.last and list_end(data, len(data)) is not None:
                return WindowReport(window.number, list_ended=True)
            salvaged = salvage(data, partial(decode_events, exact=self._exact), exact=self._exact)
            decoded = build(salvaged.events, self._words, exact=self._exact, first_index=first_index)
        report = _report(window, decoded, salvaged)
        for group, column, row, text in decoded.oversize:
            file, before = self._writer.place(group)
            report.oversize.append((file, column, before + row, text))
        self._writer.add(decoded.frames)
        return report


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A window makes a hundred thousand objects without cycles: collecting among them only costs time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _report(window: Window, decoded: Decoded, salvaged: Salvaged) -> WindowReport:
    places = _Places(window)
    return WindowReport(
        number=window.number,
        events=decoded.events,
        bad_device=len(decoded.bad_device),
        bad_device_at=places.of_event(decoded.bad_device, salvaged),
        bad_host=len(decoded.bad_host),
        bad_host_at=places.of_event(decoded.bad_host, salvaged),
        repaired={what: (count, places.of_byte(at)) for what, (count, at) in salvaged.repaired.items()},
        lost=[places.of_byte(at) for at in salvaged.lost],
        head=salvaged.head,
        tail=salvaged.tail,
        oversize=[],
        process_names=decoded.process_names,
        thread_names=decoded.thread_names,
    )


class _Places:
    """Where things stand in the file."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def of_byte(self, at: int) -> Place:
        line = self._window.line
        return self._window.offset + at, None if line is None else line + self._window.buffer.count(b"\n", 0, at)

    def of_event(self, positions: list[int], salvaged: Salvaged) -> Place | None:
        """Return the place of the first of some events, found by decoding the window once more in outline."""
        if not positions:
            return None
        if salvaged.starts:
            return self.of_byte(salvaged.starts[min(positions)])
        data = self._window.data
        listed = as_list(data, 0, len(data))
        texts: list[Any] = msgspec.json.decode(listed, type=list[msgspec.Raw])
        at = 0
        for text in texts[: min(positions) + 1]:
            raw = bytes(text)
            at = data.index(raw, at) + len(raw)
        return self.of_byte(at - len(raw))
