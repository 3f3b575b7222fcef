"""One trace as a stream -> a store: windows are decoded here, or by worker processes when the trace is large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.ingest.container import Plain, describe_unknown
from traceanalyzer.ingest.document import Document, NotATrace, Window
from traceanalyzer.ingest.finish import Reading, finish
from traceanalyzer.ingest.metadata import Source
from traceanalyzer.ingest.store import Store
from traceanalyzer.ingest.window import PartWriter, WindowDecoder, WindowReport
from traceanalyzer.problems import TraceError

if TYPE_CHECKING:
    from traceanalyzer.ingest.pool import WorkerPool

WINDOW_BYTES = 8 << 20
WINDOWS_BEFORE_WORKERS = 4
"""Traces of fewer windows are decoded in this process: starting workers would take longer."""


class NoTraceError(TraceError):
    """The file is sound as far as it goes, but is no profiler trace (it may lie beside one)."""


def read_trace(plain: Plain, size: int, directory: Path, pool: WorkerPool | None = None) -> Store:
    """Read a trace from decompressed blocks into a new store in ``directory``.

    Args:
        plain: the text, positioned at its start (compression peeled off).
        size: bytes as stored, for the report.
        directory: empty, existing.
        pool: workers that may be used.

    Raises:
        TraceError: it is no trace, or no event of it can be used.
    """
    document = Document(plain, WINDOW_BYTES)
    cut_off = False

    def windows() -> Iterator[Window]:
        nonlocal cut_off
        for window in document.windows():
            cut_off = cut_off or window.cut_off
            yield window

    try:
        reports = _decode(windows(), directory, pool)
    except NotATrace as problem:
        kind = TraceError if plain.problems or problem.damaged else NoTraceError
        raise kind(plain.path, _reason(problem, plain)) from None
    compression = "+".join(plain.layers) or None
    source = Source(plain.path, size, "json", compression, events=0)
    return finish(Reading(document, reports, cut_off, directory), source, plain.problems)


def _reason(problem: NotATrace, plain: Plain) -> str:
    reason = str(problem) or describe_unknown(plain.start)
    damage = "; ".join(warning.message for warning in plain.problems)
    return f"{reason} ({damage})" if damage else reason


def _decode(windows: Iterable[Window], directory: Path, pool: WorkerPool | None) -> list[WindowReport]:
    """Decode windows as they come; hand over to the workers once there are many."""
    windows = iter(windows)
    writer = PartWriter(directory, "m")
    decoder = WindowDecoder(writer)
    reports = []
    waiting: list[Window] = []
    for window in windows:
        if pool is None:
            reports.append(decoder.decode(window))
            continue
        waiting.append(window)
        if len(waiting) > WINDOWS_BEFORE_WORKERS:
            return [*reports, *pool.decode(_chained(waiting, windows), directory)]
    reports += [decoder.decode(window) for window in waiting]
    writer.flush()
    return reports


def _chained(waiting: list[Window], rest: Iterator[Window]) -> Iterator[Window]:
    while waiting:
        yield waiting.pop(0)
    yield from rest


Progress = Callable[[int, "int | None"], None]
"""Called with the bytes of input read so far and, where known, their total."""
