"""One window of the event list -> frames. The only place that knows how JSON becomes columns.

``decode_window`` is a pure function of the bytes, so that a native decoder could take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from traceanalyzer.ingest import columns
from traceanalyzer.ingest.events import (
    EXTRA_KEYS,
    EXTRA_MARKERS,
    IDS,
    INTEGERS,
    TEXTS,
    Event,
    ExactEvent,
)
from traceanalyzer.ingest.schema import DEVICE_CATEGORIES, EVENT_SCHEMA, group_of, today

EVENTS = msgspec.json.Decoder(list[Event])
EXACT_EVENTS = msgspec.json.Decoder(list[ExactEvent])
NO_ARGS = msgspec.json.decode(b'{"args":{}}', type=Event).args
PAIRS = "pairs"
JSON_TEXTS = columns.JsonTexts()
ALL_ARGS = frozenset({*INTEGERS, *TEXTS, "kernel"})
ARGS_OF_GROUP = {
    "device": ALL_ARGS - {"input_dims", "input_types", "concrete_inputs", "kernel"},
    "launch": frozenset({"stream", "bytes", "shared_memory", "grid", "thread_block", "kernel"}),
    "op": frozenset({"input_dims", "input_types", "concrete_inputs"}),
}
"""Args besides the ids that events of a group can have: looking for others in every event would cost time."""


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
    """Decode the text of a JSON list of events; ``exact`` keeps times as written.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError, RecursionError: not valid JSON, or not a list of events.
    """
    return EXACT_EVENTS.decode(data) if exact else EVENTS.decode(data)


def build(events: Sequence[Any], *, exact: bool, first_index: int = 0) -> Decoded:
    """Turn decoded events into frames; ``first_index`` is the index of the first event.

    Raises:
        columns.NeedsExactTimes: decode again with ``exact``.
    """
    decoded = Decoded(events=len(events))
    rows = _Rows()
    others: list[tuple[int, Any]] = []
    for index, event in enumerate(events, first_index):
        if event.ph == "X":
            add_index, add_event = rows[event.cat]
            add_index(index)
            add_event(event)
        else:
            others.append((index, event))
    for index, event in others:
        if event.ph in {"B", "E"}:
            rows.add(PAIRS, index, event)
        elif event.ph == "M":
            _note_names(event, decoded)
    for group, (positions, members) in rows.groups.items():
        frame = _frame(group, positions, members, decoded, exact=exact)
        decoded.frames[group] = frame if group == PAIRS else _usable(frame, group, first_index, decoded)
    return decoded


class _Rows(dict[Any, tuple[Any, Any]]):
    """Category -> how to append to the lists of its group.

    Attributes:
        groups: positions and events by group.
    """

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, tuple[list[int], list[Any]]] = {}

    def __missing__(self, category: Any) -> tuple[Any, Any]:
        positions, members = self.groups.setdefault(group_of(CATEGORIES[category]), ([], []))
        self[category] = positions.append, members.append
        return self[category]

    def add(self, group: str, position: int, event: Any) -> None:
        positions, members = self.groups.setdefault(group, ([], []))
        positions.append(position)
        members.append(event)


class _Categories(dict[Any, "str | None"]):
    """Category as written -> today's spelling, remembered."""

    def __missing__(self, value: Any) -> str | None:
        text = columns.label(value)
        found = None if text is None else today(text)
        if len(self) < 10_000:
            self[value] = found
        return found


CATEGORIES = _Categories()


def _note_names(event: Any, decoded: Decoded) -> None:
    """Keep the labels that metadata events give to processes and threads."""
    label = event.args.label if event.args is not None else None
    pid = columns.label(event.pid)
    if not isinstance(label, str) or pid is None:
        return
    if event.name == "process_name":
        decoded.process_names[pid] = label
    elif event.name == "thread_name":
        decoded.thread_names[f"{pid}/{columns.label(event.tid)}"] = label


def _frame(group: str, positions: list[int], rows: list[Any], decoded: Decoded, *, exact: bool) -> pl.DataFrame:
    times = columns.times_from_text if exact else columns.times_from_floats
    found: dict[str, pl.Series] = {
        "index": pl.Series(positions, dtype=pl.Int64),
        "cat": pl.Series([CATEGORIES[event.cat] for event in rows], dtype=pl.String),
        "name": columns.labels(_values(rows, "name")),
        "pid": columns.labels(_values(rows, "pid")),
        "tid": columns.labels(_values(rows, "tid")),
        "start_ns": times(_values(rows, "ts")),
        "dur_ns": times(_values(rows, "dur")),
    }
    if group != "python":
        args = [NO_ARGS if event.args is None else event.args for event in rows]
        found |= _arg_columns(group, args, decoded)
    series = [
        found[name].cast(dtype).alias(name)
        if name in found
        else pl.Series(name, [None], dtype=dtype).new_from_index(0, len(rows))
        for name, dtype in EVENT_SCHEMA.items()
    ]
    if group == PAIRS:
        series.append(pl.Series("ph", _values(rows, "ph"), dtype=pl.String))
    return pl.DataFrame(series)


def _values(rows: Sequence[Any], name: str) -> list[Any]:
    return list(map(attrgetter(name), rows))


def _arg_columns(group: str, args: list[Any], decoded: Decoded) -> dict[str, pl.Series]:
    wanted = ARGS_OF_GROUP.get(group, ALL_ARGS)
    series: dict[str, pl.Series] = {}
    for name in wanted.intersection(INTEGERS):
        if (values := _present(args, name)) is not None:
            series[name] = columns.integers(values, EVENT_SCHEMA[name])
    for name in IDS:
        if (values := _present(args, name, f"old_{name}")) is not None:
            series[name], oversize = columns.ids(values)
            decoded.oversize += [(group, name, row, text) for row, text in oversize.items()]
    for name in wanted.intersection(TEXTS):
        older = "old_input_dims" if name == "input_dims" else None
        if (values := _present(args, name, older)) is not None:
            series[name] = JSON_TEXTS.column(values)
    if "kernel" in wanted and (values := _present(args, "kernel")) is not None:
        series["launched_kernel"] = columns.labels(values)
    if group != "launch" and any(_present(args, marker) is not None for marker in EXTRA_MARKERS):
        series["extra"] = pl.Series([_extra(each) for each in args], dtype=pl.String)
    return series


def _present(args: list[Any], name: str, older: str | None = None) -> list[Any] | None:
    """Return one arg of every event, or None where no event has it."""
    values = _values(args, name)
    missing = values.count(None)
    if missing and older is not None:
        old = _values(args, older)
        if old.count(None) < len(old):
            values = [a if a is not None else b for a, b in zip(values, old, strict=True)]
            missing = values.count(None)
    return None if missing == len(values) else values


def _extra(args: Any) -> str | None:
    if all(getattr(args, marker) is None for marker in EXTRA_MARKERS):
        return None
    kept = ((key, getattr(args, name)) for name, key in EXTRA_KEYS.items())
    texts = (f'"{key}": {bytes(raw).decode("utf-8", "replace")}' for key, raw in kept if raw is not None)
    return "{" + ", ".join(texts) + "}"


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
