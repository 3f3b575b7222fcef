"""Paths in, stores out."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read import inputs, pipes, remote
from traceanalyzer.read.cache import Cache, Entry, Loaded, load_entry, write_entry
from traceanalyzer.read.container import Plain
from traceanalyzer.read.failures import named_in_errors
from traceanalyzer.read.input_path import InputPath, input_path, named_twice, size_of
from traceanalyzer.read.metadata import TraceSource
from traceanalyzer.read.output import write_output
from traceanalyzer.read.pool import WorkerPool
from traceanalyzer.read.rank_of_file import set_warnings
from traceanalyzer.read.scratch import Scratch
from traceanalyzer.read.store import Store
from traceanalyzer.read.streaming import NoTraceError, Progress, read_trace
from traceanalyzer.workers import peak_memory

EMPTY = "the file is empty (0 bytes)"


@dataclass(frozen=True)
class Effort:
    """What reading the input took.

    Attributes:
        seconds: wall time.
        text_bytes: decompressed text that was decoded; 0 when everything came from the cache or from stores.
        peak_bytes: peak memory of this process and the workers together (the sum of their peaks).
        processes: workers used; 0 when this process did it alone.
    """

    seconds: float
    text_bytes: int
    peak_bytes: int
    processes: int


@dataclass(frozen=True)
class IngestResult:
    """What came of the paths a user gave.

    Attributes:
        stores: one per rank's trace, in order of the paths.
        sources: every file looked at, those without a trace too.
        warnings: about the input as a whole; those about one trace are in its metadata.
        effort: what it took.
    """

    stores: tuple[Store, ...]
    sources: tuple[TraceSource, ...]
    warnings: tuple[TraceWarning, ...]
    effort: Effort


@dataclass
class _Gathered:
    stores: list[Store] = field(default_factory=list)
    sources: list[TraceSource] = field(default_factory=list)
    warnings: list[TraceWarning] = field(default_factory=list)
    errors: list[TraceError] = field(default_factory=list)

    def take(self, loaded: Loaded) -> None:
        self.stores += loaded.stores
        self.sources += [store.metadata.source for store in loaded.stores]
        self.sources += loaded.skipped
        self.warnings += loaded.warnings

    def skip(self, source: TraceSource, error: TraceError | None = None) -> None:
        """Note a file without a usable trace, and the error where the user is to be told of it."""
        self.sources.append(source)
        if error is not None:
            self.errors.append(error)


def ingest(
    paths: Sequence[str],
    *,
    output: Path | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    processes: int | None = None,
) -> IngestResult:
    """Read traces and return their stores, one per rank.

    Args:
        paths: files (plain or compressed), directories, archives, stores written earlier, URLs, and pipes (``-`` is
            standard input), which are not cached.
        output: directory to write the store to (or, for several traces, one store in each directory below it).
        cache: whether to use and fill the user's cache; without, stores are temporary and vanish at exit.
        progress: called with the bytes read and their total.
        processes: how many worker processes large traces may use; None chooses by the machine, 0 uses none.

    Raises:
        TraceError: no path holds a trace that can be used, a pipe is named twice, or the output cannot be written.
    """
    twice = named_twice(paths)
    if twice is not None:
        raise TraceError(twice, f"{pipes.READ_ONCE}, but it is named twice")
    given = [input_path(path) for path in paths]
    gathered = _Gathered()
    began = time.perf_counter()
    with WorkerPool(processes) as pool:
        run = IngestRun(gathered, _open_cache(gathered) if cache else None, pool)
        if progress is not None:
            run.show(progress, _total_bytes(given))
        for each in given:
            run.read(each)
        if not gathered.stores:
            raise nothing_found(given, gathered.errors, gathered.sources)
        gathered.warnings += [skipped_file(error) for error in gathered.errors]
        if asks_for_ranks(given, len(gathered.stores)):
            gathered.warnings += set_warnings([store.metadata for store in gathered.stores])
        stores = tuple(gathered.stores) if output is None else write_output(gathered.stores, output)
        effort = Effort(time.perf_counter() - began, run.text_bytes, peak_memory() + pool.peak_bytes, pool.running)
        return IngestResult(stores, tuple(gathered.sources), tuple(gathered.warnings), effort)


def skipped_file(error: TraceError) -> TraceWarning:
    """Return the warning that stands for an error where other files could be read."""
    return TraceWarning("skipped_file", f"{error.path} was skipped: {error.reason}", source=error.path)


def asks_for_ranks(paths: Sequence[InputPath], stores: int) -> bool:
    """Whether the input is meant to be the ranks of a job, so that gaps among them are worth a word."""
    return len(paths) > 1 or stores > 1 or any(path.kind == "folder" for path in paths)


def _open_cache(gathered: _Gathered) -> Cache | None:
    try:
        return Cache.open()
    except OSError as error:
        message = f"the cache cannot be used ({error.strerror or error}): the trace is read anew each time"
        gathered.warnings.append(TraceWarning("no_cache", message))
        return None


def nothing_found(
    paths: Sequence[InputPath], errors: Sequence[TraceError], sources: Sequence[TraceSource]
) -> TraceError:
    """Return the error for input without any usable trace."""
    if errors:
        first, more = errors[0], len(errors) - 1
        return TraceError(first.path, f"{first.reason} (and {more} more)") if more else first
    reasons = sorted({source.skipped for source in sources if source.skipped})
    why = f": {'; '.join(reasons[:3])}" if reasons else ""
    return TraceError(", ".join(path.shown for path in paths) or "input", f"no trace found{why}")


class IngestRun:
    """One call of ``ingest``.

    Args:
        gathered: takes what is read.
        cache: where entries are kept; None for temporary ones.
        pool: workers that may be used.

    Attributes:
        text_bytes: of decompressed text decoded so far.
    """

    def __init__(self, gathered: _Gathered, cache: Cache | None, pool: WorkerPool) -> None:
        self.text_bytes = 0
        self._gathered = gathered
        self._cache = cache
        self._pool = pool
        self._progress: Progress | None = None
        self._total: int | None = None
        self._before = 0

    def show(self, progress: Progress, total: int | None) -> None:
        """Call ``progress`` with the bytes read and their total."""
        self._progress, self._total = progress, total

    def read(self, given: InputPath) -> None:
        """Read one path as given."""
        try:
            if given.kind == "url":
                for name, size, opener in remote.files(given.path):
                    self._attempt(InputPath(name, "url"), lambda: self._stream(name, size, opener))  # noqa: B023
                return
            for each in given.entries():
                self._entry(each, chosen=given.kind != "folder")
        except TraceError as error:
            self._gathered.errors.append(error)

    def _entry(self, entry: InputPath, *, chosen: bool) -> None:
        if entry.kind == "store":
            self._gathered.take(_store(entry))
        elif entry.kind == "pipe":
            self._attempt(entry, lambda: self._pipe(entry.path))
        elif (reason := None if chosen else inputs.by_name(entry.path)) is not None:
            self._gathered.skip(without_trace(entry, reason))
        else:
            self._attempt(entry, lambda: self._local(entry.path), chosen=chosen)

    def _attempt(self, entry: InputPath, read: Callable[[], Loaded], *, chosen: bool = True) -> None:
        """Read one file; a file that cannot be used is noted, and the others are still read."""
        try:
            self._gathered.take(read())
            self._before += entry.size
            self._report(0)
        except TraceError as error:
            tells = chosen or not isinstance(error, NoTraceError)
            self._gathered.skip(_skipped(error), error if tells else None)

    def _local(self, path: str) -> Loaded:
        status = inputs.check_file(path)
        if status.st_size == 0:
            raise TraceError(path, EMPTY)
        with inputs.opened(path, self._report) as plain, named_in_errors(path):
            if self._cache is None:
                return self._build(plain, status.st_size, None)
            key = self._cache.key(path, status, plain.source)
            loaded = self._cache.load(key, plain.path)
            if loaded is not None:
                return loaded
            return self._build(plain, status.st_size, key)

    def _pipe(self, path: str) -> Loaded:
        with pipes.opened(path, self._report) as plain, named_in_errors(path):
            if not plain.peek(1):
                raise TraceError(path, EMPTY)
            return self._build(plain, None, None)

    def _stream(self, path: str, size: int | None, opener: Callable[[], Plain]) -> Loaded:
        with named_in_errors(path):
            plain = opener()
            plain.on_read = self._report
            return self._build(plain, size, None)

    def _report(self, done: int) -> None:
        if self._progress is not None:
            self._progress(self._before + done, self._total)

    def _build(self, plain: Plain, size: int | None, key: str | None) -> Loaded:
        """Read the traces of one file into an entry of the cache, or into a temporary directory.

        Args:
            plain: the file, at its start.
            size: bytes as stored; None where they are not known beforehand.
            key: of the entry; None for a temporary directory.
        """
        scratch = _scratch(self._cache, plain.path) if key is not None else _temporary()
        try:
            entry = self._read_all(plain, size or 0, scratch.path)
            changed = size is not None and size != plain.stored_size()
            if changed:
                entry.warnings.append(TraceWarning("changed_while_read", "the file changed while it was read"))
            write_entry(scratch.path, entry)
            if key is None or self._cache is None or changed:
                directory = scratch.keep_until_exit()
            else:
                directory = scratch.publish(self._cache.directory / key)
        except BaseException:
            scratch.discard()
            raise
        loaded = load_entry(directory, plain.path)
        if loaded is None:
            raise TraceError(plain.path, f"the store in {directory} cannot be read back")
        return loaded

    def _read_all(self, plain: Plain, size: int, directory: Path) -> Entry:
        entry = Entry(plain.path, [], [], [])
        errors: list[TraceError] = []
        for stream in inputs.traces_in(plain, size, chosen=True):
            entry.warnings += stream.problems
            if stream.plain is None:
                entry.skipped.append(TraceSource(stream.path, stream.size, "unknown", None, 0, skipped=stream.skipped))
                continue
            target = directory / str(len(entry.stores))
            target.mkdir()
            try:
                store = read_trace(stream.plain, stream.size, target, self._pool, before=self.text_bytes)
                self.text_bytes += store.metadata.text_bytes
            except TraceError as error:
                shutil.rmtree(target, ignore_errors=True)
                errors.append(error)
                entry.skipped.append(replace(_skipped(error), bytes=stream.size))
            else:
                entry.stores.append(target.name)
        if not entry.stores:
            if errors:
                raise errors[0]
            reasons = "; ".join(sorted({source.skipped or "" for source in entry.skipped})[:3])
            raise TraceError(plain.path, f"no trace in it{': ' + reasons if reasons else ''}")
        return entry


def without_trace(entry: InputPath, reason: str) -> TraceSource:
    """Return a file that holds no trace that can be used."""
    return TraceSource(entry.shown, entry.size, "unknown", None, 0, skipped=reason)


def _skipped(error: TraceError) -> TraceSource:
    return TraceSource(error.path, size_of(error.path), "unknown", None, 0, skipped=error.reason)


def _total_bytes(paths: Sequence[InputPath]) -> int | None:
    """Return how many bytes there are to read, or None where that is not known beforehand."""
    if any(path.kind in {"pipe", "url"} for path in paths):
        return None
    return sum(entry.size for path in paths for entry in path.entries() if inputs.by_name(entry.path) is None)


def _store(place: InputPath) -> Loaded:
    store = Store.read(Path(place.path))
    source = replace(store.metadata.source, path=place.shown, format="store")
    return Loaded((replace(store, metadata=replace(store.metadata, source=source)),), (), ())


def _scratch(cache: Cache | None, path: str) -> Scratch:
    assert cache is not None
    try:
        return cache.scratch()
    except OSError as error:
        raise TraceError(path, f"the cache cannot be written: {error.strerror or error}") from error


def _temporary() -> Scratch:
    return Scratch(Path(tempfile.gettempdir()))
