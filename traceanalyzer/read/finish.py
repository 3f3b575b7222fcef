"""What can only be said once the whole trace was read: offsets, pairs, ids, clipped durations, metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read.defects import placed, reading_warnings
from traceanalyzer.read.device_events import (
    adopt_accelerators,
    forget_zero_correlations,
    place_on_devices,
    unseen_work,
)
from traceanalyzer.read.event_schema import DEVICE_CATEGORIES, LAUNCH_CATEGORIES, group_of
from traceanalyzer.read.graph_names import repair_names
from traceanalyzer.read.ids import replace_oversize
from traceanalyzer.read.metadata import TraceMetadata, TraceSource
from traceanalyzer.read.pairs import join_pairs
from traceanalyzer.read.rank_of_file import placement
from traceanalyzer.read.sanitize import implausible_durations, stray_times
from traceanalyzer.read.store import Store, events_in, position
from traceanalyzer.read.trace_text import TraceText, Window
from traceanalyzer.read.window import PartWriter, Place, WindowDecoder, WindowReport
from traceanalyzer.wording import plural

PAIRS = "pairs"
DAMAGE = frozenset({"truncated", "damaged_compression", "unreadable_events"})
"""Warnings that mean that events were lost."""

ROOT_KEPT_BYTES = 1 << 16


@dataclass(frozen=True)
class Reading:
    """A trace whose windows were decoded.

    Attributes:
        document: read to its end.
        reports: one per window, any order.
        cut_off: whether the event list ended before its closing bracket.
        directory: the store being written.
        restart: gives the text once more, to find lines; None where it cannot be had twice.
    """

    document: TraceText
    reports: list[WindowReport]
    cut_off: bool
    directory: Path
    restart: Callable[[], Iterable[bytes]] | None


def finish(reading: Reading, source: TraceSource, compression: Sequence[TraceWarning]) -> Store:
    """Complete a store.

    Raises:
        TraceError: there are no events in the trace.
    """
    directory = reading.directory
    writer = PartWriter(directory, "z")
    reports = [*reading.reports, *_rejoined(reading.reports, writer)]
    reports.sort(key=lambda report: report.number)
    warnings = list(compression)
    warnings += _pair_warnings(directory, writer)
    writer.flush()
    starts = _window_starts(reports)
    oversize = replace_oversize(directory, [each for report in reports for each in report.oversize])
    store = Store(directory, TraceMetadata(source, 0), starts)
    warnings += adopt_accelerators(store)
    place_on_devices(store)
    forget_zero_correlations(store)
    warnings += _drop_strays(store)
    warnings += repair_names(store, rocm=any(key.startswith(("roctracer", "hip_")) for key in reading.document.root))
    warnings += _clip(store)
    names = {pid: name for report in reports for pid, name in report.process_names.items()}
    warnings += unseen_work(store, warnings, names)
    events = sum(report.events for report in reports)
    warnings += reading_warnings(reports, events, cut_at=_cut_at(reading))
    damaged = any(w.code in DAMAGE for w in warnings)
    base = _base(store, source.path, reports, damaged=damaged)
    source = replace(source, events=events, recovered_events=events if damaged else None)
    metadata = _metadata(reading.document.root, source, base, reports)
    warnings += [*reading.document.problems, *metadata.warnings]
    metadata = replace(
        metadata,
        oversize_ids=oversize,
        text_bytes=reading.document.text_bytes,
        warnings=tuple(placed(warnings, reading.restart, source.path)),
    )
    store = replace(store, metadata=metadata)
    store.write_manifest()
    return store


def _cut_at(reading: Reading) -> Place | None:
    """Return where the event list breaks off, or None where it is complete."""
    if not reading.cut_off:
        return None
    last = max(reading.reports, key=lambda report: report.number)
    return last.lost.pop() if last.lost else (reading.document.text_bytes, None)


def _window_starts(reports: Sequence[WindowReport]) -> tuple[int, ...]:
    """Return the position of each window's first event; numbers that no window has repeat the next one's."""
    starts, total = [], 0
    counts = {report.number: report.events for report in reports}
    for number in range(max(counts, default=0) + 1):
        starts.append(total)
        total += counts.get(number, 0)
    return tuple(starts)


def _rejoined(reports: Sequence[WindowReport], writer: PartWriter) -> list[WindowReport]:
    """Read events that the cut between two windows went through (a cut can only be guessed at)."""
    by_number = {report.number: report for report in reports}
    rejoined = []
    for report in reports:
        following = by_number.get(report.number + 2)
        if report.tail is None or following is None or following.head is None:
            continue
        place = report.lost[-1]
        number = report.number + 1
        joined = WindowDecoder(writer).decode(Window(number, *place, report.tail + following.head))
        if joined.events and not joined.lost:
            report.lost.pop()
            following.lost.pop(0)
            rejoined.append(joined)
    return rejoined


def _pair_warnings(directory: Path, writer: PartWriter) -> list[TraceWarning]:
    """Join begin and end events, where the trace has some, and say so."""
    files = sorted(directory.glob(f"{PAIRS}-*.parquet"))
    if not files:
        return []
    phases = pl.concat([pl.read_parquet(file, columns=["ph"]) for file in files])
    joined, begins, ends = join_pairs(events_in(files).collect().hstack(phases))
    group = (
        pl.col("cat")
        .cast(pl.String)
        .replace_strict(
            {name: group_of(name) for name in joined["cat"].cast(pl.String).unique() if name is not None},
            default="other",
        )
    )
    parts = joined.with_columns(group=group).partition_by("group", as_dict=True, include_key=False)
    writer.add({str(key[0]): part for key, part in parts.items()})
    for file in files:
        file.unlink()
    message = f"{joined.height} events were recorded as begin/end (B/E) pairs and joined into complete events"
    warnings = [TraceWarning("begin_end_pairs", message, count=joined.height)]
    if begins or ends:
        message = f"ignored events without their other half: {_halves(begins, ends)}"
        warnings.append(TraceWarning("unmatched_begin_end", message, count=begins + ends))
    return warnings


def _halves(begins: int, ends: int) -> str:
    counts = ((begins, "begin (B)"), (ends, "end (E)"))
    return " and ".join(plural(count, f"{kind} event") for count, kind in counts if count)


def _drop_strays(store: Store) -> list[TraceWarning]:
    if not store.files("device"):
        return []
    strays = stray_times(store.scan(DEVICE_CATEGORIES), store.scan((*LAUNCH_CATEGORIES, "user_annotation", "cpu_op")))
    if strays.is_empty():
        return []
    _rewrite(store, "device", lambda frame: frame.join(strays, on="index", how="anti"))
    skipped = plural(strays.height, "GPU event")
    message = f"skipped {skipped} with invalid times (at zero, or more than a day from the others)"
    return [TraceWarning("invalid_gpu_times", message, count=strays.height)]


def _clip(store: Store) -> list[TraceWarning]:
    if not store.files("device"):
        return []
    cut = implausible_durations(store.scan(DEVICE_CATEGORIES))
    if cut.is_empty():
        return []
    new = cut.select("index", clipped_ns="dur_ns")

    def clip(frame: pl.DataFrame) -> pl.DataFrame:
        joined = frame.join(new, on="index", how="left", maintain_order="left")
        return joined.with_columns(dur_ns=pl.coalesce("clipped_ns", "dur_ns")).drop("clipped_ns")

    _rewrite(store, "device", clip)
    longest = cut.sort("raw_ns", descending=True).row(0, named=True)
    message = (
        f"clipped {plural(cut.height, 'GPU event')} where the next one of the stream starts: an implausible duration "
        f"(up to {longest['raw_ns'] / 1e6:.3f} ms, overlapping later kernels); the longest: {longest['name']!r}"
    )
    return [TraceWarning("clipped_durations", message, count=cut.height)]


def _rewrite(store: Store, group: str, change: Any) -> None:
    """Change the rows of a group's files; ``change`` sees positions in the event list as ``index``."""
    for file in store.files(group):
        frame = pl.read_parquet(file)
        placed = frame.with_columns(packed="index", index=position(store.window_starts))
        changed = change(placed).with_columns(index="packed").drop("packed")
        if not changed.equals(frame):
            changed.write_parquet(file, compression="zstd", compression_level=1)


def _base(store: Store, path: str, reports: Sequence[WindowReport], *, damaged: bool) -> int:
    base = store.scan().select(pl.col("start_ns").min()).collect(engine="streaming").item()
    if base is not None:
        return int(base)
    bad = sum(report.bad_device + report.bad_host for report in reports)
    listed = sum(report.events for report in reports)
    if damaged:
        why = "the file is damaged or incomplete, and no complete event can be read"
    elif bad:
        why = f"none of its {bad} timed events has usable times"
    else:
        why = f"it holds {listed} metadata records only" if listed else "the event list is empty"
    raise TraceError(path, f"no events to analyse: {why}")


def _metadata(root: dict[str, Any], source: TraceSource, base: int, reports: Sequence[WindowReport]) -> TraceMetadata:
    distributed = root.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    placed = placement(source.path, distributed)
    base_time = root.get("baseTimeNanoseconds")
    devices = root.get("deviceProperties")
    process_names: dict[str, str] = {}
    thread_names: dict[str, str] = {}
    for report in reports:
        process_names |= report.process_names
        thread_names |= report.thread_names
    taken = {"distributedInfo", "deviceProperties", "baseTimeNanoseconds"}
    scalars = {key: value for key, value in root.items() if key not in taken and _is_small(value)}
    return TraceMetadata(
        source=source,
        base_ns=base,
        base_time_ns=_whole(base_time),
        device_properties=tuple(each for each in devices if isinstance(each, dict))
        if isinstance(devices, list)
        else (),
        distributed=distributed,
        rank=placed.rank,
        rank_source=placed.source,
        world_size=placed.world_size,
        parallel=placed.parallel,
        process_names=process_names,
        thread_names=thread_names,
        properties=scalars,
        warnings=placed.warnings,
    )


def _is_small(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) and len(str(value)) < ROOT_KEPT_BYTES


def _whole(value: Any) -> int | None:
    try:
        return int(value) if isinstance(value, int | str | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
