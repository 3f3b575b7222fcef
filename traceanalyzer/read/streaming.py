"""One trace as a stream -> a store: windows are decoded here, or by worker processes when the trace is large."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from traceanalyzer.problems import TraceError
from traceanalyzer.read.container import Plain, describe_unknown
from traceanalyzer.read.finish import Reading, finish
from traceanalyzer.read.metadata import TraceSource
from traceanalyzer.read.pool import ListEndedError, WorkerPool, decode_here
from traceanalyzer.read.store import Store
from traceanalyzer.read.trace_text import NotATrace, TraceText, Window
from traceanalyzer.read.window import WindowReport

WINDOW_BYTES = 8 << 20
WORKERS_FROM_BYTES = 128 << 20
"""Text from which on workers decode: for less, starting them takes longer than they save."""

TYPICAL_RATIO = 15
"""How many times smaller a compressed trace is, to tell the size of its text beforehand."""


class NoTraceError(TraceError):
    """The file is sound as far as it goes, but not a profiler trace (it may lie beside one)."""


def read_trace(plain: Plain, size: int, directory: Path, pool: WorkerPool, *, before: int = 0) -> Store:
    """Read a trace from decompressed blocks into a new store in ``directory``.

    Args:
        plain: the text, positioned at its start (compression peeled off).
        size: bytes as stored, for the report; 0 where they are not known beforehand.
        directory: empty, existing.
        pool: workers that may be used.
        before: text that this run has read already: workers pay for many small traces, too.

    Raises:
        TraceError: it is not a trace, or no event of it can be used.
    """
    large = before + size * (TYPICAL_RATIO if plain.layers else 1) >= WORKERS_FROM_BYTES
    try:
        return _read(plain, size, directory, pool, large=large, careful=not plain.can_restart)
    except ListEndedError:
        shutil.rmtree(directory)
        directory.mkdir()
        return _read(plain.restarted(), size, directory, pool, large=large, careful=True)


def _read(plain: Plain, size: int, directory: Path, pool: WorkerPool, *, large: bool, careful: bool) -> Store:
    document = TraceText(plain, WINDOW_BYTES, careful=careful, count_lines=not plain.can_restart)
    cut_off = False

    def windows() -> Iterator[Window]:
        nonlocal cut_off
        for window in document.windows():
            cut_off = cut_off or window.cut_off
            yield window

    try:
        reports = pool.decode(windows(), directory) if large else _decode(windows(), directory, pool)
    except NotATrace as problem:
        kind = TraceError if plain.problems or problem.damaged else NoTraceError
        raise kind(plain.path, _reason(problem, plain)) from None
    compression = "+".join(plain.layers) or None
    source = TraceSource(plain.path, size or plain.stored_bytes, "json", compression, events=0)
    restart = plain.restarted if plain.can_restart else None
    return finish(Reading(document, reports, cut_off, directory, restart), source, plain.problems)


def _reason(problem: NotATrace, plain: Plain) -> str:
    damage = "; ".join(warning.message for warning in plain.problems)
    if damage and not plain.start:
        return f"nothing can be read of it: {damage}"
    reason = str(problem) or describe_unknown(plain.start)
    return f"{reason} ({damage})" if damage else reason


def _decode(windows: Iterator[Window], directory: Path, pool: WorkerPool) -> list[WindowReport]:
    """Decode windows here, and the rest by the workers where there turn out to be many."""
    limit = max(1, WORKERS_FROM_BYTES // WINDOW_BYTES)
    reports = decode_here(islice(windows, limit), directory)
    return reports if len(reports) < limit else [*reports, *pool.decode(windows, directory)]


Progress = Callable[[int, "int | None"], None]
"""Called with the bytes of input read so far and, where known, their total."""
