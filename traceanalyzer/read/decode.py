"""One window of the event list -> frames. The only place that knows how JSON becomes columns.

Events are decoded in two steps: first what every event has, its args being passed over; then the args of those
events, and only those fields, that columns are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import astuple

from traceanalyzer.read import typed_columns as columns
from traceanalyzer.read.dictionary import Dictionary, EventLabels
from traceanalyzer.read.event_schema import DEVICE_CATEGORIES, EVENT_SCHEMA, group_of, today
from traceanalyzer.read.event_struct import (
    ARGS_OF_GROUP,
    EXTRA_KEYS,
    EXTRA_MARKERS,
    GROUP_ARGS,
    IDS,
    INTEGERS,
    METADATA,
    NOTE_MARKERS,
    NULL,
    OLDER,
    PAIRS,
    RAW_ARGS,
    TEXTS,
    Args,
    Event,
    ExactEvent,
    Extra,
)
from traceanalyzer.read.json_borders import border_like
from traceanalyzer.read.loose_json import whole_characters

EVENTS = msgspec.json.Decoder(list[Event])
EXACT_EVENTS = msgspec.json.Decoder(list[ExactEvent])
ARGS = msgspec.json.Decoder(list[Args | None])
EXTRAS = msgspec.json.Decoder(list[Extra])
GROUP_DECODERS = {
    group: msgspec.json.Decoder(list[kind | None])  # type: ignore[valid-type]
    for group, kind in GROUP_ARGS.items()
}
NO_ARGS = {group: kind() for group, kind in GROUP_ARGS.items()}

KINDS = tuple(GROUP_ARGS)
IGNORED = len(KINDS)
"""Number of the group of events that no rows are made of (flows, instants, counters)."""

ONLY = [bytes(int(byte == kind) for byte in range(256)) for kind in range(IGNORED)]
"""Translations of group numbers to 1 for one group and 0 for all others."""

CHUNK_BYTES = 1 << 19
"""Text decoded at once: its objects stay in the processor's cache until they have become numbers."""


@dataclass
class Decoded:
    """What one window holds.

    Attributes:
        events: elements of the event list in it, of every phase.
        frames: rows by group of files, columns of EVENT_SCHEMA, ``index`` counted from ``first_index``. The group
            ``pairs`` has the column ``ph`` too and holds begin and end events to be joined later.
        bad_device, bad_host: positions of complete events without usable times.
        oversize: (group, column, row, text) of ids that do not fit in 64 bit.
        process_names, thread_names: from metadata events.
    """

    events: int = 0
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    bad_device: list[int] = field(default_factory=list)
    bad_host: list[int] = field(default_factory=list)
    oversize: list[tuple[str, str, int, str]] = field(default_factory=list)
    process_names: dict[str, str] = field(default_factory=dict)
    thread_names: dict[str, str] = field(default_factory=dict)


def decode_events(data: bytes | memoryview, *, exact: bool) -> list[Any]:
    """Decode the text of a JSON list of events and check all of it; ``exact`` keeps times as written.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError, RecursionError: not valid JSON, or not a list of events.
    """
    events = _outline(data, exact=exact)
    _decode_args(ARGS, [event.args for event in events])
    return events


def _outline(data: bytes | memoryview, *, exact: bool) -> list[Any]:
    """Decode a list of events but for their args."""
    return EXACT_EVENTS.decode(data) if exact else EVENTS.decode(data)


def _decode_args(decoder: Any, texts: Iterable[msgspec.Raw]) -> list[Any]:
    return decoder.decode(b"[%b]" % b",".join(texts))  # type: ignore[no-any-return]


def decode_text(
    data: bytes, words: EventWords, *, exact: bool, first_index: int = 0, size: int | None = None
) -> Decoded:
    """Turn the text of events (with separators between them, without a list's brackets) into frames.

    Args:
        data: begins with the text.
        words: what was seen before; new labels are added.
        exact: keep times as written.
        first_index: index of the first event.
        size: bytes of ``data`` that are the text; None for all.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError, RecursionError: not valid JSON, or not events as expected.
        columns.NeedsExactTimes: decode again with ``exact``.
    """
    end = len(data) if size is None else size
    try:
        return _decode_lists(_chunks(data, end), words, exact=exact, first_index=first_index)
    except (msgspec.DecodeError, RecursionError):
        return _decode_lists([as_list(data, 0, end)], words, exact=exact, first_index=first_index)


def _decode_lists(texts: Iterable[bytes], words: EventWords, *, exact: bool, first_index: int) -> Decoded:
    rows = _Rows(words, first_index)
    for text in texts:
        rows.add(_outline(text, exact=exact))
    return rows.decoded(exact=exact)


def build(events: Sequence[Any], words: EventWords, *, exact: bool, first_index: int = 0) -> Decoded:
    """Turn decoded events into frames; ``first_index`` is the index of the first event.

    Raises:
        columns.NeedsExactTimes: decode again with ``exact``.
    """
    rows = _Rows(words, first_index)
    rows.add(events)
    return rows.decoded(exact=exact)


def _chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Cut the first ``size`` bytes, which are events, into lists that can be decoded one by one.

    A cut that goes through an event leaves brackets or quotes open, so that what precedes it cannot be decoded.
    """
    start, border = 0, border_like(data)
    while start < size:
        cut = border.search(data, start + CHUNK_BYTES, size)
        end, following = (cut.start() + 1, cut.end()) if cut else (size, size)
        yield as_list(data, start, end)
        start = following


def as_list(data: bytes, start: int, end: int) -> bytes:
    """Return a stretch of events as a JSON list, without separators at its ends."""
    while end > start and data[end - 1] in b", \t\r\n":
        end -= 1
    while start < end and data[start] in b", \t\r\n":
        start += 1
    return b"".join((b"[", memoryview(data)[start:end], b"]"))


def _kind(phase: Any, category: Any) -> int:
    """Return the number of the group that events belong to."""
    if phase == "X":
        return KINDS.index(group_of(_category(category)))
    if phase in {"B", "E"}:
        return KINDS.index(PAIRS)
    return KINDS.index(METADATA) if phase == "M" else IGNORED


def _category(value: Any) -> str | None:
    """Return a category in today's spelling."""
    text = columns.label(value)
    return None if text is None else today(text)


class EventWords:
    """What repeats in the events of a trace: their labels, JSON texts among their args, and names of kernels."""

    def __init__(self) -> None:
        self.labels = EventLabels(_kind, (columns.label, _category, columns.label, columns.label, columns.label))
        self.json_texts = Dictionary(columns.json_text)
        self.kernels = Dictionary(columns.label)

    def begin(self) -> None:
        """Start a window: what has grown too large starts anew."""
        for each in (self.labels, self.json_texts, self.kernels):
            each.begin()


@dataclass
class _Group:
    """What is gathered of one group's events: times as decoded, args by field, extra text by row."""

    starts: list[Any] = field(default_factory=list)
    durations: list[Any] = field(default_factory=list)
    args: dict[str, list[Any]] = field(default_factory=dict)
    extras: dict[int, str] = field(default_factory=dict)


class _Rows:
    """Gathers events of one window."""

    def __init__(self, words: EventWords, first_index: int) -> None:
        words.begin()
        self._words = words
        self._first_index = first_index
        self._labels: list[int] = []
        self._groups: dict[int, _Group] = {}
        self._decoded = Decoded()

    def add(self, events: Sequence[Any]) -> None:
        """Take the next events. (No loop over them runs in the interpreter: it would take longer than the decoder.)"""
        if not events:
            return
        phases, categories, names, pids, tids, starts, durations, args = zip(*map(astuple, events), strict=True)
        labels = list(map(self._words.labels.__getitem__, zip(phases, categories, names, pids, tids, strict=True)))
        self._labels += labels
        kinds = bytes(map(self._words.labels.kinds.__getitem__, labels))
        for kind in set(kinds) - {IGNORED}:
            chosen = kinds.translate(ONLY[kind])
            texts = compress(args, chosen)
            if KINDS[kind] == METADATA:
                self._note_names(compress(names, chosen), compress(pids, chosen), compress(tids, chosen), texts)
                continue
            group = self._groups.setdefault(kind, _Group())
            _gather_args(group, KINDS[kind], list(texts), self._words)
            group.starts.extend(compress(starts, chosen))
            group.durations.extend(compress(durations, chosen))

    def _note_names(self, names: Iterable[Any], pids: Iterable[Any], tids: Iterable[Any], texts: Iterable[Any]) -> None:
        """Keep the labels that metadata events give to processes and threads."""
        decoded = _decode_args(GROUP_DECODERS[METADATA], texts)
        for name, process, thread, args in zip(names, pids, tids, decoded, strict=True):
            label = None if args is None else args.label
            pid = columns.label(process)
            if not isinstance(label, str) or pid is None:
                continue
            if name == "process_name":
                self._decoded.process_names[pid] = label
            elif name == "thread_name":
                self._decoded.thread_names[f"{pid}/{columns.label(thread)}"] = label

    def decoded(self, *, exact: bool) -> Decoded:
        """Return the frames.

        Raises:
            columns.NeedsExactTimes: decode again with ``exact``.
        """
        decoded = self._decoded
        decoded.events = len(self._labels)
        labels = pl.Series(self._labels, dtype=pl.UInt32)
        kinds = pl.Series(list(self._words.labels.kinds), dtype=pl.UInt8)[labels]
        for kind, group in self._groups.items():
            at, name = (kinds == kind).arg_true(), KINDS[kind]
            frame = self._frame(name, group, at, labels[at], exact=exact)
            decoded.frames[name] = frame if name == PAIRS else _usable(frame, name, self._first_index, decoded)
        return decoded

    def _frame(self, name: str, group: _Group, at: pl.Series, labels: pl.Series, *, exact: bool) -> pl.DataFrame:
        times = columns.times_from_text if exact else columns.times_from_floats
        series = {
            "index": at.cast(pl.Int64) + self._first_index,
            "start_ns": times(group.starts),
            "dur_ns": times(group.durations),
        }
        for label in EventLabels.FIELDS:
            series[label] = self._words.labels.column(label, labels)
        series |= _arg_columns(name, group.args, self._words, self._decoded)
        if group.extras:
            texts = pl.Series([None], dtype=pl.String).new_from_index(0, at.len())
            texts = texts.scatter(list(group.extras), list(group.extras.values()))
            series["extra"] = texts.cast(pl.Categorical())
        names = [column for column in EVENT_SCHEMA if column in series]
        return pl.DataFrame([series[column].alias(column) for column in (*names, *(["ph"] if name == PAIRS else []))])


def _gather_args(group: _Group, name: str, texts: list[msgspec.Raw], words: EventWords) -> None:
    """Decode the args that events of a group can have; times of the same events must not have been added yet."""
    fields = ARGS_OF_GROUP[name]
    if not fields:
        return
    args = _decode_args(GROUP_DECODERS[name], texts)
    if None in args:
        args = [NO_ARGS[name] if each is None else each for each in args]
    for arg, values in zip(fields, zip(*map(astuple, args), strict=True), strict=True):
        if arg in EXTRA_MARKERS or arg in NOTE_MARKERS:
            if values.count(NULL) < len(values):
                marked = [row for row, value in enumerate(values) if value != NULL]
                _note_extras(group, marked, [texts[row] for row in marked])
            continue
        into = group.args.setdefault(arg, [])
        if arg in RAW_ARGS:
            into.extend(map(words.json_texts.__getitem__, _as_bytes(values)))
        elif arg == "kernel":
            into.extend(map(words.kernels.__getitem__, values))
        else:
            into.extend(values)


def _as_bytes(values: Sequence[msgspec.Raw]) -> list[bytes]:
    """Return each value's JSON; one copy and a split take a third of the time of as many conversions."""
    texts = b"\0".join(values).split(b"\0")
    return texts if len(texts) == len(values) else list(map(bytes, values))


def _note_extras(group: _Group, rows: Sequence[int], texts: Sequence[msgspec.Raw]) -> None:
    """Keep what the column ``extra`` is made of."""
    before = len(group.starts)
    for row, args in zip(rows, _decode_args(EXTRAS, texts), strict=True):
        kept = ((key, bytes(value)) for key, value in zip(EXTRA_KEYS.values(), astuple(args), strict=True))
        pairs = (f'"{key}": {whole_characters(raw).decode("utf-8", "replace")}' for key, raw in kept if raw != b"null")
        group.extras[before + row] = "{" + ", ".join(pairs) + "}"


def _arg_columns(group: str, args: dict[str, list[Any]], words: EventWords, decoded: Decoded) -> dict[str, pl.Series]:
    """Return the columns of args that any event has."""
    series: dict[str, pl.Series] = {}
    for name, values in args.items():
        if name in INTEGERS and values.count(None) < len(values):
            series[name] = columns.integers(values, EVENT_SCHEMA[name])
    for name in IDS:
        values = _with_older(args, name, None)
        if values:
            series[name], oversize = columns.ids(values)
            decoded.oversize += [(group, name, row, text) for row, text in oversize.items()]
    missing = words.json_texts[b"null"]
    for name in TEXTS:
        values = _with_older(args, name, missing)
        if values:
            series[name] = words.json_texts.column(values)
    if "kernel" in args:
        column = words.kernels.column(args["kernel"])
        if column.null_count() < column.len():
            series["launched_kernel"] = column
    return series


def _with_older(args: dict[str, list[Any]], name: str, missing: int | None) -> list[Any]:
    """Return an arg of every event, in either spelling; nothing where no event has it."""
    values = args.get(name, [])
    absent = values.count(missing)
    if not absent:
        return values
    older = args.get(OLDER.get(name, ""), [])
    if older.count(missing) < len(older):
        values = [b if a == missing else a for a, b in zip(values, older, strict=True)]
        absent = values.count(missing)
    return values if absent < len(values) else []


def _usable(frame: pl.DataFrame, group: str, first_index: int, decoded: Decoded) -> pl.DataFrame:
    """Leave out events without usable times and note where they stood."""
    start, dur = frame["start_ns"], frame["dur_ns"]
    if not start.null_count() + dur.null_count() and _within(start, lowest=1) and _within(dur, lowest=0):
        return frame
    latest = columns.MAX_TIME_NS
    good = (start >= 0) & (dur >= 0) & (start < latest) & (dur < latest) & ((start > 0) | (dur > 0))
    mask = good.fill_null(value=False)
    bad = frame.filter(~mask)
    on_device = bad["cat"].cast(pl.String).is_in(DEVICE_CATEGORIES).fill_null(value=False)
    decoded.bad_device += (bad.filter(on_device)["index"] - first_index).to_list()
    decoded.bad_host += (bad.filter(~on_device)["index"] - first_index).to_list()
    if decoded.oversize:
        kept = {int(row): new for new, row in enumerate(mask.arg_true())}
        decoded.oversize = [
            (g, column, kept[row] if g == group else row, text)
            for g, column, row, text in decoded.oversize
            if g != group or row in kept
        ]
    return frame.filter(mask)


def _within(times: pl.Series, lowest: int) -> bool:
    return bool(times.min() >= lowest and times.max() < columns.MAX_TIME_NS)  # type: ignore[operator]
