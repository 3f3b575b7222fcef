"""Events out of a window that is not valid JSON.

The window is split where one event seems to end and the next to begin, and halved until the pieces that cannot be
read stand alone. Those are repaired where the repair is certain (spellings of numbers that JSON lacks, bytes that
are not UTF-8, control characters and quotes inside strings); what is beyond repair is counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import msgspec

from traceanalyzer.read.event_struct import ARG_KEYS, EXTRA_KEYS, RAW_ARGS, Event, ExactEvent
from traceanalyzer.read.json_borders import EVENT_BOUNDARY, closing
from traceanalyzer.read.loose_json import whole_characters

RUN = 256
LARGEST_TIME = 2**63
MAX_JOINED_BYTES = 1 << 20
MAX_SEARCHED_BYTES = 32 << 20
"""How far an event with inner objects is searched for its end, and how far in all within a window."""

STRING_OR_WORD = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*"'
    rb"|(?i:[-+]?(?:\bnan\b(?:\([a-z0-9]*\))?|\binf(?:inity)?\b|1\.#[a-z]+[0-9]*))"
    rb"|\b(?:None|True|False|undefined)\b",
    re.DOTALL,
)
PYTHON_WORDS = {b"None": b"null", b"True": b"true", b"False": b"false", b"undefined": b"null"}
CONTROL = re.compile(rb"[\x00-\x1f]")
OVERFLOW = re.compile(rb"(?<=[:,\[\s])-?\d+(?:\.\d+)?[eE]\+?\d{3,}(?=\s*[,}\]])")
LONE_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
QUOTED_VALUE = re.compile(
    rb'("(?:name|cat|kernel|pid|tid)"\s*:\s*")(.*?)'
    rb'(?="\s*(?:,\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:|\}\s*(?:[,}\]]|\Z)))',
    re.DOTALL,
)


@dataclass
class Salvaged:
    """Outcome for one window.

    Attributes:
        events: in the order of the file.
        texts: the same as JSON, mended where they were.
        starts: where each begins in the window.
        repaired: what was mended -> (how many events, offset of the first in the window).
        lost: offsets of the pieces that could not be read.
        head, tail: text before the first and after the last event where it could not be read: these may be halves
            of events that the cuts between windows went through.
    """

    events: list[Any] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    repaired: dict[str, tuple[int, int]] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    head: bytes | None = None
    tail: bytes | None = None


def salvage(data: bytes, decode: Callable[[bytes], list[Any]], *, exact: bool) -> Salvaged:
    """Read what can be read of the events' text (without the list's brackets).

    Args:
        data: events and separators between them.
        decode: strict decoder of a JSON list of events.
        exact: whether the events wanted are those with times as written.
    """
    return _Salvage(data, decode, exact=exact).run()


class _Salvage:
    def __init__(self, data: bytes, decode: Callable[[bytes], list[Any]], *, exact: bool) -> None:
        self._data = data
        self._decode = decode
        self._exact = exact
        self._spans = _pieces(data)
        self._read: list[Any] = [None] * len(self._spans)
        self._mended: dict[int, bytes] = {}
        self._repaired: dict[str, list[int]] = {}
        self._searched = 0

    def run(self) -> Salvaged:
        """Decode by halves, then mend what is left."""
        self._halve(0, len(self._spans))
        outcome = Salvaged()
        piece = 0
        while piece < len(self._spans):
            first, event = piece, self._read[piece]
            if event is None or event.ph is None:
                joined = self._join(piece)
                if joined is not None:
                    event, piece = joined
                elif event is None:
                    event = self._mend(piece)
            start, end = self._spans[first][0], self._spans[piece][1]
            if event is None:
                if self._data[start:end].strip(b"\0 \t\r\n,"):
                    outcome.lost.append(start)
            else:
                outcome.events.append(event)
                outcome.starts.append(start)
                outcome.texts.append(self._mended.get(first, self._data[start:end]))
            piece += 1
        _set_ends_apart(outcome, self._data)
        outcome.repaired = {what: (len(places), min(places)) for what, places in self._repaired.items()}
        return outcome

    def _text(self, first: int, last: int) -> bytes:
        """Return pieces ``first`` up to but without ``last``, separated by single commas."""
        return b",".join(self._data[start:end] for start, end in self._spans[first:last])

    def _halve(self, first: int, last: int) -> None:
        if first == last:
            return
        events = self._try(self._text(first, last))
        if events is None and last - first <= RUN:
            text = self._text(first, last)
            clean, mended = cleaned(text)
            events = self._try(clean) if mended else None
            if events is not None and len(events) == last - first:
                self._note_repairs(first, last)
        if events is not None and len(events) == last - first:
            self._read[first:last] = events
        elif last - first > 1:
            middle = (first + last) // 2
            self._halve(first, middle)
            self._halve(middle, last)

    def _try(self, text: bytes) -> list[Any] | None:
        try:
            return self._decode(b"[" + text + b"]")
        except (msgspec.DecodeError, RecursionError, ValueError):
            return None

    def _note_repairs(self, first: int, last: int) -> None:
        """Find out which of a run of pieces needed the cleaning that made the run readable."""
        for piece in range(first, last):
            start, end = self._spans[piece]
            clean, mended = cleaned(self._data[start:end])
            self._mended[piece] = clean
            for what in mended:
                self._repaired.setdefault(what, []).append(start)

    def _join(self, piece: int) -> tuple[Any, int] | None:
        """Read an event that holds something that looks like the border of two: up to its own closing bracket."""
        start = self._spans[piece][0]
        limit = min(len(self._data), start + MAX_JOINED_BYTES)
        if piece + 1 == len(self._spans) or self._searched > MAX_SEARCHED_BYTES:
            return None
        end = closing(self._data, start, limit)
        self._searched += (limit if end is None else end) - start
        if end is None or end < self._spans[piece + 1][0]:
            return None
        events = self._try(self._data[start : end + 1])
        if events is None or len(events) != 1 or events[0].ph is None:
            return None
        last = next((at for at in range(piece, len(self._spans)) if self._spans[at][1] > end), None)
        return None if last is None or self._spans[last][1] != end + 1 else (events[0], last)

    def _mend(self, piece: int) -> Any:
        start, end = self._spans[piece]
        text = self._data[start:end]
        clean, mended = cleaned(text)
        quoted = quotes_escaped(clean)
        attempts = [
            (clean, mended),
            (b"{" + clean.lstrip(b"{"), mended | {"stray brackets"}),
            (quoted, mended | {"unescaped quotes or backslashes"}),
        ]
        for candidate, what in attempts:
            event = self._loose(candidate)
            if event is not None:
                self._mended[piece] = candidate
                for each in what or {"fields of an unexpected type"}:
                    self._repaired.setdefault(each, []).append(start)
                return event
        return None

    def _loose(self, text: bytes) -> Any:
        """Decode one event whose fields may be of any type; those of a wrong type are left out."""
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return None
        if not isinstance(value, dict) or not isinstance(value.get("ph"), str):
            return None
        args = value.get("args")
        fields = {key: value.get(key) for key in ("ph", "cat", "name", "pid", "tid") if _is_label(value.get(key))}
        raw = msgspec.json.encode
        times = {key: value[key] for key in ("ts", "dur") if _is_time(value.get(key))}
        kind: Any = ExactEvent if self._exact else Event
        if self._exact:
            event = kind(**fields, **{key: msgspec.Raw(raw(each)) for key, each in times.items()})
        else:
            event = kind(
                **fields, **{key: each if isinstance(each, str) else float(each) for key, each in times.items()}
            )
        if isinstance(args, dict):
            event.args = _loose_args(args)
        return event


def _set_ends_apart(outcome: Salvaged, data: bytes) -> None:
    """Take what precedes the first event and follows the last one as the halves of events cut between windows."""
    events = [start for start, event in zip(outcome.starts, outcome.events, strict=True) if event.ph is not None]
    if not outcome.lost or not events:
        return
    begin, end = 0, len(data)  # of what remains between the halves
    if (after := _first(outcome.lost, beyond=events[-1])) is not None:
        end = after
        outcome.tail = data[after:]
        outcome.lost = [at for at in outcome.lost if at <= after]
    if outcome.lost[0] < events[0]:
        begin = events[0]
        outcome.head = data[:begin]
        outcome.lost = [outcome.lost[0], *(at for at in outcome.lost if at > begin)]
    kept = [begin <= start <= end for start in outcome.starts]
    outcome.events = list(compress(outcome.events, kept))
    outcome.texts = list(compress(outcome.texts, kept))
    outcome.starts = list(compress(outcome.starts, kept))


def _first(places: Iterable[int], *, beyond: int) -> int | None:
    return next((place for place in places if place > beyond), None)


def _pieces(data: bytes) -> list[tuple[int, int]]:
    """Return the spans of what seem to be single events."""
    spans, start = [], 0
    for border in EVENT_BOUNDARY.finditer(data):
        spans.append((start, border.start() + 1))
        start = border.end()
    spans.append((start, len(data)))
    return [span for start, end in spans if (span := _stripped(data, start, end))[0] < span[1]]


def _stripped(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Leave white space and separators at both ends of a span out."""
    text = data[start:end]
    left = len(text) - len(text.lstrip(b" \t\r\n,"))
    right = len(text.rstrip(b" \t\r\n,"))
    return start + left, start + max(left, right)


def cleaned(text: bytes) -> tuple[bytes, set[str]]:
    """Mend what has one meaning only; return the text and what was mended."""
    mended: set[str] = set()
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode()
        mended.add("bytes that are not UTF-8")

    def token(match: re.Match[bytes]) -> bytes:
        written = match[0]
        if written in PYTHON_WORDS:
            mended.add("words that are not JSON")
            return PYTHON_WORDS[written]
        if not written.startswith(b'"'):
            mended.add("numbers that are NaN or infinite")
            return b"null"
        if CONTROL.search(written):
            mended.add("control characters")
            written = CONTROL.sub(lambda c: b"\\u%04x" % c[0][0], written)
        whole = whole_characters(written)
        if whole != written:
            mended.add("half characters (lone surrogates)")
        return whole

    text = STRING_OR_WORD.sub(token, text)
    if OVERFLOW.search(text):
        text = OVERFLOW.sub(b"null", text)
        mended.add("numbers that are NaN or infinite")
    return text, mended


def quotes_escaped(text: bytes) -> bytes:
    """Escape quotes and backslashes that stand bare inside names."""

    def value(match: re.Match[bytes]) -> bytes:
        inner = LONE_BACKSLASH.sub(rb"\\\\", match[2])
        inner = re.sub(rb'(?<!\\)((?:\\\\)*)"', rb'\1\\"', inner)
        return match[1] + inner

    return QUOTED_VALUE.sub(value, text)


def _is_time(value: Any) -> bool:
    if isinstance(value, int) and abs(value) >= LARGEST_TIME:
        return False  # no float can hold some of them
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _is_label(value: Any) -> bool:
    return _is_scalar(value) and not isinstance(value, bool)


def _loose_args(args: dict[str, Any]) -> msgspec.Raw:
    """Return the args without those of an unexpected type."""
    kept = {}
    for name, key in (*ARG_KEYS.items(), *EXTRA_KEYS.items()):
        fits = name in RAW_ARGS or (_is_label if name == "kernel" else _is_scalar)(args.get(key))
        if fits and args.get(key) is not None:
            kept[key] = args[key]
    return msgspec.Raw(msgspec.json.encode(kept))
