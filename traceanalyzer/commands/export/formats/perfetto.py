"""A trace with what was found in it, for ui.perfetto.dev and chrome://tracing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceanalyzer.commands.doctor.compute import write_repaired
from traceanalyzer.commands.export.formats.tracks import KINDS, Slice, Track, tracks_of
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.read.input_path import is_file
from traceanalyzer.read.metadata import TraceMetadata
from traceanalyzer.trace import Trace
from traceanalyzer.wording import visible

CATEGORY = "traceanalyzer"
FIRST_PID = 990_000
LANES = 100
"""Numbers kept for the lanes of one kind of track."""


def export(trace: Trace, target: Path) -> bool:
    """Write a trace with tracks for steps, blocks, roles, idle gaps and findings.

    The events of the file are copied as they are; where the file is no longer at hand (a store, an archive's member),
    they are written from the ingested columns, which lack flows and counters.

    Args:
        target: the file to write, gzip where its name ends in .gz.

    Returns:
        whether the events are the file's own.

    Raises:
        TraceError: it cannot be written.
    """
    added = list(added_events(tracks_of(trace), trace.metadata))
    source = trace.metadata.source
    if source.format == "json" and is_file(source.path):
        write_repaired(source.path, target, added)
        return True
    document = (
        b'{"traceEvents": [\n' + b",\n".join([*_names(trace.metadata), *_stored_events(trace), *added]) + b"\n]}\n"
    )
    if target.suffix == ".gz":
        from isal import igzip

        document = igzip.compress(document, compresslevel=2)
    write_whole(target, document)
    return False


def added_events(tracks: list[Track], metadata: TraceMetadata) -> Iterator[bytes]:
    """Yield the events of the tracks: a process per device, a thread per track; times in the clock of the file."""
    devices = list(dict.fromkeys(track.device for track in tracks))
    pids = dict(zip(devices, _unused_pids(metadata, len(devices)), strict=True))
    for device, pid in pids.items():
        name = "CPU" if device is None else f"GPU {device}"
        yield _meta("process_name", pid, 0, {"name": f"traceanalyzer: {name}"})
        yield _meta("process_labels", pid, 0, {"labels": "found in the trace"})
        yield _meta("process_sort_index", pid, 0, {"sort_index": -100 + len(pids)})
    for track in tracks:
        pid, tid = pids[track.device], KINDS.index(track.kind) * LANES + track.lane + 1
        lane = f" ({track.lane + 1})" if track.lane else ""
        yield _meta("thread_name", pid, tid, {"name": f"{track.kind}{lane}"})
        yield _meta("thread_sort_index", pid, tid, {"sort_index": tid})
        for one in track.slices:
            yield _slice(one, pid, tid, metadata.base_ns)


def _unused_pids(metadata: TraceMetadata, count: int) -> list[int]:
    taken = set(metadata.process_names)
    return [pid for pid in range(FIRST_PID, FIRST_PID + count + len(taken)) if str(pid) not in taken][:count]


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args})


def _slice(one: Slice, pid: int, tid: int, base_ns: int) -> bytes:
    event: dict[str, Any] = {
        "ph": "X",
        "cat": CATEGORY,
        "name": visible(one.name),
        "pid": pid,
        "tid": tid,
        "ts": _us(one.start_ns + base_ns),
        "dur": _us(one.end_ns - one.start_ns),
        "args": {key: visible(value) if isinstance(value, str) else value for key, value in one.facts.items()},
    }
    if one.end_ns == one.start_ns:
        del event["dur"]
        event |= {"ph": "i", "s": "t"}
    return msgspec.json.encode(event)


def _us(ns: int) -> msgspec.Raw:
    """Microseconds with three decimals; a float would lose nanoseconds of a Unix time."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{size // 1000}.{size % 1000:03d}".encode())


def _names(metadata: TraceMetadata) -> Iterator[bytes]:
    for pid, name in metadata.process_names.items():
        yield msgspec.json.encode({"ph": "M", "name": "process_name", "pid": _number(pid), "args": {"name": name}})
    for place, name in metadata.thread_names.items():
        pid, _, tid = place.rpartition("/")
        thread = {"ph": "M", "name": "thread_name", "pid": _number(pid), "tid": _number(tid), "args": {"name": name}}
        yield msgspec.json.encode(thread)


_ARGUMENTS = {
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "external_id": "External id",
    "bytes": "bytes",
    "grid": "grid",
    "thread_block": "block",
    "input_dims": "Input Dims",
    "input_types": "Input type",
}
_JSON_TEXT = ("grid", "thread_block", "input_dims", "input_types")


def _stored_events(trace: Trace) -> Iterator[bytes]:
    columns = ["cat", "name", "pid", "tid", "start_ns", "dur_ns", *_ARGUMENTS]
    text = [pl.col("cat", "name", "pid", "tid").cast(pl.String), pl.col(*_JSON_TEXT).cast(pl.String)]
    try:
        events = trace.events.sort("index").select(columns).with_columns(text).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise TraceError(trace.metadata.source.path, f"the ingested events cannot be read: {error}") from error
    for row in events.iter_rows(named=True):
        args = {
            name: _json_value(row[column]) if column in _JSON_TEXT else row[column]
            for column, name in _ARGUMENTS.items()
            if row[column] is not None
        }
        yield msgspec.json.encode(
            {
                "ph": "X",
                "cat": row["cat"],
                "name": row["name"],
                "pid": _number(row["pid"]),
                "tid": _number(row["tid"]),
                "ts": _us(row["start_ns"] + trace.metadata.base_ns),
                "dur": _us(row["dur_ns"]),
                "args": args,
            }
        )


@cache
def _json_value(text: str) -> msgspec.Raw | str:
    """Return a value that was kept as JSON; one that was a string in the file was kept as it was."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.Raw(text.encode())


def _number(text: str | None) -> int | str | None:
    try:
        return text if text is None else int(text)
    except ValueError:
        return text
