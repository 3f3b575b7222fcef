"""Steps: which step every device event belongs to, by the launch that started it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import polars as pl

from traceanalyzer.segment.markers import ANNOTATION_PATTERN, ENGINES, PYTHON_PATTERN, Marker, python_rank, read_marker
from traceanalyzer.segment.tokens import BoolArray, IntArray
from traceanalyzer.trace import Trace
from traceanalyzer.words import PhaseSource

_LEAST_SHARE = 0.1
"""Share of a device's events that a thread must have launched to be an engine of its own.
Chosen, not fitted: two engines that share a device each launch far more, helper threads far less."""
_GRAPH_FROM = 8
"""Events of one launch above which it was a graph's, whatever the call is named. Chosen, not fitted."""
_MOST_SHAPES = 64
"""Distinct kernel sequences from which on windows are not searched for several steps; bounds the work.
Chosen, not fitted."""
_NEVER = 2**62
"""Later than any event, in ns; negative, before any."""


@dataclass(frozen=True)
class Mark:
    """A marker on the host's clock, in ns. `thread` is pid/tid."""

    start: int
    end: int
    label: str | None
    thread: str
    marker: Marker


@dataclass(frozen=True)
class StepEvents:
    """A step before its blocks are known. `events` are positions within the device's events.

    `phase_source` says how the phase is known, `phase_confidence` how likely an inferred one is right, 0 to 1.
    """

    events: IntArray
    source: str
    label: str | None = None
    phase: str = "unknown"
    complete: bool = True
    requests: int | None = None
    tokens: int | None = None
    kv_tokens: int | None = None
    phase_source: PhaseSource | None = None
    phase_confidence: float | None = None
    window: tuple[int, int] | None = field(default=None, compare=False)


def with_launches(trace: Trace) -> pl.DataFrame:
    """Return ``Trace.device_events`` with `launch_ns`, `launch_thread` and `graph` (see PLACEMENT_SCHEMA).

    In a CPU-only trace an op is its own launch.
    """
    events = trace.device_events
    thread = pl.concat_str(pl.col("pid").cast(pl.String), pl.lit("/"), pl.col("tid").cast(pl.String))
    if trace.cpu_only:
        return events.with_columns(
            launch_ns=pl.col("start_ns"), launch_thread=thread, graph=pl.lit(False), launch_id=pl.col("index")
        )
    launches = (
        trace.launches.lazy()
        .sort("start_ns")
        .group_by("correlation")
        .agg(
            launch_ns=pl.col("start_ns").first(),
            launch_thread=thread.first(),
            calls_graph=pl.col("name").cast(pl.String).str.contains("GraphLaunch").any(),
        )
    )
    return (
        events.lazy()
        .join(launches, on="correlation", how="left", maintain_order="left")
        .with_columns(
            graph=pl.col("calls_graph").fill_null(False)
            | (pl.col("correlation").is_not_null() & (pl.len().over("correlation", "device") > _GRAPH_FROM)),
            launch_id=pl.col("correlation"),
        )
        .drop("calls_graph")
        .collect()
    )


def read_marks(trace: Trace) -> list[Mark]:
    """Return the marks of the best source the trace has, in order of start.

    Execution markers of an engine come before ProfilerStep, that before Python frames. Marks that enclose each
    other are one step's: the outer one's window, the facts of both.
    """
    marks = _annotated(trace)
    executions = [mark for mark in marks if mark.marker.source in ENGINES]
    if executions:
        return _unify(_main_passes(executions))
    profiler = [mark for mark in marks if mark.marker.source == "profiler_step"]
    return _unify(profiler) if profiler else _unify(_python(trace))


def _main_passes(marks: list[Mark]) -> list[Mark]:
    """Leave out the passes of a draft model, which belong to the step before: those that say so, and where passes
    verify what was drafted those that decode."""
    verified = any(mark.marker.verifies and mark.marker.source == "sglang" for mark in marks)
    main = [
        mark
        for mark in marks
        if not mark.marker.drafts and not (verified and mark.marker.phase == "decode" and not mark.marker.verifies)
    ]
    return main or marks


def _annotated(trace: Trace) -> list[Mark]:
    events = _host_events(trace, ("user_annotation", "cpu_op"), ANNOTATION_PATTERN)
    marks = []
    for start, dur, name, thread in events.iter_rows():
        marker = read_marker(name)
        if marker is not None:
            marks.append(Mark(start, start + dur, name, thread, marker))
    return marks


def _python(trace: Trace) -> list[Mark]:
    events = _host_events(trace, ("python_function",), PYTHON_PATTERN)
    rows = [(python_rank(name), start, dur, name, thread) for start, dur, name, thread in events.iter_rows()]
    ranks = [row[0] for row in rows if row[0] is not None]
    best = min(ranks, default=None)
    return [
        Mark(start, start + dur, name, thread, Marker("python"))
        for rank, start, dur, name, thread in rows
        if rank is not None and rank == best
    ]


def _host_events(trace: Trace, categories: tuple[str, ...], pattern: str) -> pl.DataFrame:
    return (
        trace.events.filter(
            pl.col("cat").cast(pl.String).is_in(categories), pl.col("name").cast(pl.String).str.contains(pattern)
        )
        .select(
            "start_ns",
            "dur_ns",
            pl.col("name").cast(pl.String),
            thread=pl.concat_str(pl.col("pid").cast(pl.String), pl.lit("/"), pl.col("tid").cast(pl.String)),
        )
        .sort("start_ns", -pl.col("dur_ns"))
        .collect()
    )


def _unify(marks: list[Mark]) -> list[Mark]:
    """Join marks that lie within another of the same thread."""
    open_mark: dict[str, int] = {}
    joined: list[Mark] = []
    for mark in marks:
        at = open_mark.get(mark.thread)
        if at is not None and mark.end <= joined[at].end:
            joined[at] = replace(joined[at], marker=_both(joined[at].marker, mark.marker))
        else:
            open_mark[mark.thread] = len(joined)
            joined.append(mark)
    return joined


def _both(outer: Marker, inner: Marker) -> Marker:
    return Marker(
        source=next((name for name in ("sglang", "atom") if name in (outer.source, inner.source)), outer.source),
        phase=inner.phase if outer.phase == "unknown" else outer.phase,
        requests=outer.requests if outer.requests is not None else inner.requests,
        tokens=outer.tokens if outer.tokens is not None else inner.tokens,
        kv_tokens=outer.kv_tokens if outer.kv_tokens is not None else inner.kv_tokens,
    )


def marks_for(marks: list[Mark], threads: set[str]) -> list[Mark]:
    """Return the marks of the threads that launched work on a device, or all where none of them has marks.

    Marks of several threads that run at the same time would cut each other's steps.
    """
    own = [mark for mark in marks if mark.thread in threads]
    return own or marks


def place_by_threads(events: pl.DataFrame, marks: list[Mark]) -> list[StepEvents]:
    """Give every launched event to a mark, where engines share a device to one of the thread that launched it.

    Two engines in one process launch at the same time, from a thread each: then the marks of a thread are its
    own, and what a thread without marks launched goes with the mark before it. See `place_by_marks`.
    """
    if not _at_once(marks):
        return place_by_marks(events, marks)
    marked = sorted({mark.thread for mark in marks})
    code = {thread: number for number, thread in enumerate(marked)}
    starts = np.array([mark.start for mark in marks], dtype=np.int64)
    before = np.searchsorted(starts, events["launch_ns"].fill_null(-_NEVER).to_numpy(), side="right") - 1
    nearest = np.array([code[mark.thread] for mark in marks])[np.maximum(before, 0)]
    launching = events["launch_thread"].replace_strict(code, default=-1, return_dtype=pl.Int64).to_numpy()
    owner = np.where(launching >= 0, launching, nearest)
    shares = np.bincount(owner[events["launch_thread"].is_not_null().to_numpy()], minlength=len(marked))
    if shares.min() < _LEAST_SHARE * shares.sum():
        return place_by_marks(events, marks)
    steps: list[StepEvents] = []
    for thread, number in code.items():
        where = np.flatnonzero(owner == number)
        own = place_by_marks(events[where], [mark for mark in marks if mark.thread == thread])
        steps += [replace(step, events=where[step.events]) for step in own]
    return sorted(steps, key=lambda step: step.window or (-_NEVER, 0))


def _at_once(marks: list[Mark]) -> bool:
    """Return whether marks of different threads overlap."""
    return any(two.start < one.end and one.thread != two.thread for one, two in pairwise(marks))


def place_by_marks(events: pl.DataFrame, marks: list[Mark]) -> list[StepEvents]:
    """Give every launched event to the mark whose window holds its launch; windows run to the next mark.

    Python frames that launched nothing are not steps. Events without a launch are left to `unlaunched`.
    """
    launch = events["launch_ns"].fill_null(-_NEVER).to_numpy()
    launched = events["launch_ns"].is_not_null().to_numpy()
    starts = np.array([mark.start for mark in marks], dtype=np.int64)
    if marks and marks[0].marker.source == "python":
        ends = np.array([mark.end for mark in marks], dtype=np.int64)
        sorted_launch = np.sort(launch[launched])
        busy = np.searchsorted(sorted_launch, ends) > np.searchsorted(sorted_launch, starts)
        marks = [mark for mark, used in zip(marks, busy.tolist(), strict=True) if used]
        starts = starts[busy]
    if not marks:
        return []
    # index[e] is the mark of event e: -1 before the first mark, -2 without a launch. Sorted by it, each mark's events
    # are one stretch; the sort is stable, so they stay in order of time.
    index = np.searchsorted(starts, launch, side="right") - 1
    index[~launched] = -2
    steps = []
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(-1, len(marks) + 1))
    early = order[bounds[0] : bounds[1]]
    if len(early):
        steps.append(StepEvents(early, marks[0].marker.source, complete=False))
    for number, mark in enumerate(marks):
        own = order[bounds[number + 1] : bounds[number + 2]]
        following = int(starts[number + 1]) if number + 1 < len(marks) else _NEVER
        if len(own):
            marker = mark.marker
            steps.append(
                StepEvents(
                    own,
                    marker.source,
                    mark.label,
                    marker.phase,
                    True,
                    marker.requests,
                    marker.tokens,
                    marker.kv_tokens,
                    None if marker.phase == "unknown" else "marker",
                    window=(mark.start, following),
                )
            )
    return steps


def unlaunched(events: pl.DataFrame) -> tuple[IntArray, IntArray]:
    """Return the events whose launch the recording lacks: those before any launched one, and the others."""
    missing = np.flatnonzero(events["launch_ns"].is_null().to_numpy())
    if not len(missing):
        return missing, missing
    launched = np.flatnonzero(events["launch_ns"].is_not_null().to_numpy())
    if not len(launched):
        return missing, missing[:0]
    first = int(launched[0])
    leading = missing[missing < first]
    return leading, missing[missing > first]


def adopt(steps: list[StepEvents], stray: IntArray) -> list[StepEvents]:
    """Give events without a launch to the step of the event before them."""
    if not len(stray) or not steps:
        return steps
    owner: dict[int, list[int]] = {}
    everything = np.concatenate([step.events for step in steps])
    numbers = np.concatenate([np.full(len(step.events), i) for i, step in enumerate(steps)])
    order = np.argsort(everything)
    before = np.searchsorted(everything[order], stray) - 1
    for position, at in zip(stray.tolist(), before.tolist(), strict=True):
        owner.setdefault(int(numbers[order[max(at, 0)]]), []).append(position)
    return [
        replace(step, events=np.sort(np.concatenate([step.events, np.array(owner[i], dtype=np.int64)])))
        if i in owner
        else step
        for i, step in enumerate(steps)
    ]


def split_unmarked(steps: list[StepEvents], tokens: IntArray, computes: BoolArray) -> list[StepEvents]:
    """Split off steps that follow a marked one in its window but lack a marker of their own.

    An engine writes its marker when the step ends; a profiler stopped before leaves only the kernels. Such a
    window holds a step's whole sequence and then the start of one that is known.

    Args:
        steps: steps by their markers.
        tokens: token of every event.
        computes: by token, whether it is part of a model's forward pass.
    """
    shapes = {tokens[step.events].tobytes() for step in steps if step.complete and step.phase != "dummy"}
    known = [np.frombuffer(shape, dtype=np.int64) for shape in shapes]
    known = [shape for shape in known if computes[shape].any()]
    result: list[StepEvents] = []
    for step in steps:
        own = tokens[step.events]
        pieces = _pieces(own, known) if step.label is not None and len(known) < _MOST_SHAPES else []
        if len(pieces) < 2:
            result.append(step)
            continue
        at = 0
        for number, (length, whole) in enumerate(pieces):
            events = step.events[at : at + length]
            at += length
            if number == 0:
                result.append(replace(step, events=events))
            else:
                result.append(StepEvents(events, step.source, complete=whole))
    return result


def _pieces(own: IntArray, known: list[IntArray]) -> list[tuple[int, bool]]:
    """Cut a sequence into known ones, the last of which may be cut short; empty where that does not work."""
    pieces: list[tuple[int, bool]] = []
    at = 0
    while at < len(own):
        rest = own[at:]
        fits = [len(shape) for shape in known if len(shape) < len(own) and np.array_equal(shape, rest[: len(shape)])]
        if fits:
            pieces.append((max(fits), True))
            at += max(fits)
            continue
        if at and any(len(shape) > len(rest) and np.array_equal(shape[: len(rest)], rest) for shape in known):
            pieces.append((len(rest), False))
            return pieces
        return []
    return pieces
