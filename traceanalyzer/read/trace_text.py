"""The text of a trace -> windows of whole events, and the facts around the event list.

The file is never held whole: a window is cut where one event ends and the next begins, so that each can be decoded
on its own. What precedes and follows the event list is read key by key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from traceanalyzer.read.json_borders import EVENT_BOUNDARY, LOOKAHEAD, border_like, list_end
from traceanalyzer.read.loose_json import loose_value
from traceanalyzer.read.text_stream import TextDamaged, TextEnded, TextStream

MAX_EVENT_BYTES = 64 << 20
EVENT_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
OBJECT = re.compile(rb'\{\s*"')
LOOSE_EVENT = re.compile(rb'\{\s*"(?:ph|cat|name|ts|pid)"')


@dataclass(frozen=True)
class Window:
    """A stretch of the event list.

    Attributes:
        number: position among the windows.
        offset, line: where it starts in the decompressed file (0-based byte, 1-based line or None).
        buffer: begins with the events' text, with separators between them, without the list's brackets.
        last: nothing follows in the list.
        cut_off: the file ended before the list did.
        size: bytes of the buffer that are the window's; None for all of them. (Copying them out would take time.)
    """

    number: int
    offset: int
    line: int | None
    buffer: bytes
    last: bool = False
    cut_off: bool = False
    size: int | None = None

    @property
    def data(self) -> bytes:
        """The events' text alone."""
        return self.buffer[: self.size]

    @property
    def view(self) -> memoryview:
        """The events' text alone, not copied."""
        return memoryview(self.buffer)[: self.size]


class NotATrace(Exception):  # noqa: N818  it is an answer, not an error
    """The text is not a trace; the message says why.

    Attributes:
        damaged: it may have been one.
    """

    def __init__(self, why: str, *, damaged: bool = False) -> None:
        super().__init__(why)
        self.damaged = damaged


class TraceText(TextStream):
    """Reads one trace from blocks of text.

    Args:
        blocks: the text in pieces.
        window_bytes: about how long windows are to be.
        careful: look for the end of the event list in every window. Otherwise it is looked for near the end of the
            text only, where it nearly always is; whoever decodes the windows must then check with ``ends_within``
            those that are not valid JSON.
        count_lines: number the lines of the text, which costs some time; without, lines after the first window are
            unknown (None).

    Attributes:
        root: the values at the root beside the events, by key.
        problems: what was wrong outside of events.
    """

    def __init__(
        self, blocks: Iterable[bytes], window_bytes: int, *, careful: bool = True, count_lines: bool = True
    ) -> None:
        super().__init__(blocks)
        self.root: dict[str, Any] = {}
        self.list_root = False
        self._window_bytes = window_bytes
        self._careful = careful
        self._count_lines = count_lines
        self._number = 0
        self._border = EVENT_BOUNDARY

    def windows(self) -> Iterator[Window]:
        """Yield the event list in pieces; the root is complete when the last was taken.

        Raises:
            NotATrace: it cannot be one.
        """
        self._start()
        if self.list_root:
            yield from self._event_windows()
            self._after_root()
            return
        if not self._keys_until_events():
            if not self.root and not self.problems:
                raise NotATrace("empty JSON object: no events in it")
            raise NotATrace("JSON, but not a profiler trace: it has no list of traceEvents")
        yield from self._event_windows()
        while self._tail_has_more_events():
            self._warn("duplicate_key", "a second traceEvents list was read as a continuation of the first")
            yield from self._event_windows()

    # Before the events.

    def _start(self) -> None:
        self._fill(3)
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._drop(3)
        first = self._skip_space()
        if not first:
            raise NotATrace("empty: it holds no data", damaged=True)
        if first not in b"{[":
            self._skip_preamble()
            first = self._buffer[:1]
        self.list_root = first == b"["
        if self.list_root or not self._is_bare_event():
            self._drop(1)
        else:
            self.list_root = True
            self._warn("no_list", "the events are not in a list (one JSON object each)")

    def _skip_preamble(self) -> None:
        """Skip text before the JSON, such as a line of a log."""
        self._fill(1 << 16)
        events = EVENT_LIST.search(self._buffer)
        start = OBJECT.search(self._buffer, 0, events.start() + 1) if events else None
        if start is None:
            raise NotATrace("")
        self._warn("leading_data", f"{start.start()} bytes before the JSON were ignored")
        self._drop(start.start())

    def _is_bare_event(self) -> bool:
        """Whether the text is events one after another, without a list around them."""
        self._fill(1 << 16)
        if not LOOSE_EVENT.match(self._buffer) or b'"traceEvents"' in self._buffer:
            return False
        try:
            end = self._value_end(0)
            event = msgspec.json.decode(self._buffer[:end])
        except (TextEnded, TextDamaged, msgspec.DecodeError, RecursionError):
            return False
        return isinstance(event, dict) and "ph" in event

    def _keys_until_events(self) -> bool:
        """Read keys of the root until the event list begins; false where the root has none."""
        try:
            return self._keys()
        except TextEnded:
            if self._seek_events():
                return True
            if not self.root:
                raise NotATrace("cut off before the first event: the file is incomplete", damaged=True) from None
            raise NotATrace("the file is incomplete: it is cut off before the event list", damaged=True) from None
        except TextDamaged:
            if self._seek_events():
                self._warn("damaged_header", "the part before the event list is not valid JSON and was read in part")
                return True
            raise NotATrace(
                f"not valid JSON at byte {self._offset} (line {self._line}), and no traceEvents after it", damaged=True
            ) from None

    def _seek_events(self) -> bool:
        while True:
            events = EVENT_LIST.search(self._buffer)
            if events:
                self._drop(events.end())
                return True
            if self._ended:
                return False
            self._drop(max(0, len(self._buffer) - 64))
            self._fill(len(self._buffer) + (1 << 20))

    def _keys(self) -> bool:
        """Read ``"key": value`` pairs; true when the value of traceEvents begins, false at the root's end."""
        while True:
            byte = self._skip_space()
            if byte == b"}":
                self._drop(1)
                return False
            if byte == b",":
                self._drop(1)
                continue
            if byte != b'"':
                raise TextEnded if not byte else TextDamaged
            end = self._value_end(0)
            key = loose_value(self._buffer[:end])
            self._drop(end)
            if self._skip_space() != b":":
                raise TextEnded if not self._buffer else TextDamaged
            self._drop(1)
            byte = self._skip_space()
            if key == "traceEvents" and byte == b"[":
                self._drop(1)
                return True
            self._root_value(str(key))

    def _root_value(self, key: str) -> None:
        end = self._value_end(0)
        text = self._buffer[:end]
        if not text.strip():
            raise TextEnded if self._ended else TextDamaged
        try:
            self.root[key] = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            value = loose_value(text)
            if value is None:
                self._warn("unreadable_value", f"the value of {key!r} is not valid JSON and was ignored")
            else:
                self.root[key] = value
        self._drop(end)

    # The events.

    def _event_windows(self) -> Iterator[Window]:
        self._fill(LOOKAHEAD)
        self._border = border_like(self._buffer)
        size = self._window_bytes
        while True:
            more = self._fill(size + LOOKAHEAD)
            limit = size if more else len(self._buffer)
            end = list_end(self._buffer, limit) if self._careful or not more else None
            if end is not None:
                window = self._take(end, last=True)
                self._drop(1)
                yield window
                return
            if not more:
                yield self._take(len(self._buffer), last=True, cut_off=not self._bare_list_ended())
                return
            cut = self._boundary(limit)
            if cut is None:
                size = self._larger(size)
                continue
            yield self._take(cut)
            size = self._window_bytes

    def _bare_list_ended(self) -> bool:
        return any(problem.code == "no_list" for problem in self.problems)

    def _take(self, size: int, *, last: bool = False, cut_off: bool = False) -> Window:
        window = Window(self._number, self._offset, self._line, self._buffer, last, cut_off, size)
        if not self._count_lines:
            self._line = None
        self._number += 2  # odd numbers are left for events found between two windows
        self._drop(size)
        return window

    def _larger(self, size: int) -> int:
        if size > MAX_EVENT_BYTES:
            raise NotATrace(f"no event ends within {MAX_EVENT_BYTES >> 20} MiB after byte {self._offset}", damaged=True)
        return 2 * size

    def _boundary(self, limit: int) -> int | None:
        """Return the end of the last event boundary before ``limit``.

        Objects inside an event look like events; those that begin with the same key as the first event of the file
        are preferred.
        """
        reach = 1 << 16
        while True:
            start = max(0, limit - reach)
            for border in (self._border, EVENT_BOUNDARY):
                ends = [match.end() for match in border.finditer(self._buffer, start, limit)]
                if ends:
                    return ends[-1]
            if start == 0:
                return None
            reach *= 16

    # After the events.

    def _tail_has_more_events(self) -> bool:
        if self._ended and not self._buffer.strip():
            if not any(p.code == "truncated" for p in self.problems):
                self._warn("truncated_tail", "the file is incomplete: it ends right after the event list")
            return False
        try:
            if self._keys():
                return True
        except TextEnded:
            self._warn("truncated_tail", "the file is incomplete: it ends within the metadata after the event list")
            return False
        except TextDamaged:
            self._after_damage()
            return False
        self._after_root()
        return False

    def _after_damage(self) -> None:
        self._warn("damaged_tail", "the text after the event list is not valid JSON; the rest was ignored")

    def _after_root(self) -> None:
        """Say what follows the document."""
        first = self._skip_space()
        if not first:
            return
        head = self._buffer[:256]
        what = "zero bytes" if not head.strip(b"\0") else "another document" if first in b"{[" else "extra data"
        self._warn("trailing_data", f"{what} after the end of the trace was ignored")
