"""Paths in, stores out."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read import (
    inputs,
    pipes,
    remote,
)
from traceanalyzer.read import (
    rank_of_file as ranks,
)
from traceanalyzer.read.cache import (
    Cache,
    Entry,
    Loaded,
    load_entry,
    write_entry,
)
from traceanalyzer.read.container import Plain
from traceanalyzer.read.failures import named_in_errors
from traceanalyzer.read.metadata import Source
from traceanalyzer.read.output import write_output
from traceanalyzer.read.pool import WorkerPool
from traceanalyzer.read.scratch import Scratch
from traceanalyzer.read.store import METADATA_FILE, Store
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
        stores: one a rank trace, in order of the paths.
        sources: every file looked at, those without a trace too.
        warnings: about the input as a whole; those about one trace are in its metadata.
        effort: what it took.
    """

    stores: tuple[Store, ...]
    sources: tuple[Source, ...]
    warnings: tuple[TraceWarning, ...]
    effort: Effort


@dataclass
class _Found:
    stores: list[Store] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    warnings: list[TraceWarning] = field(default_factory=list)
    errors: list[TraceError] = field(default_factory=list)

    def take(self, loaded: Loaded) -> None:
        self.stores += loaded.stores
        self.sources += [store.metadata.source for store in loaded.stores]
        self.sources += loaded.skipped
        self.warnings += loaded.warnings


def ingest(
    paths: Sequence[str],
    *,
    output: Path | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    processes: int | None = None,
) -> IngestResult:
    """Read traces and return their stores, one a rank.

    Args:
        paths: files (plain or compressed), directories, archives, stores written earlier, URLs, and pipes (``-`` is
            standard input), which are not cached.
        output: directory to write the store to (or, for several traces, one store in each directory below it).
        cache: whether to use and fill the user's cache; without, stores are temporary and vanish at exit.
        progress: called with the bytes read and their total.
        processes: how many worker processes large traces may use; null chooses by the machine, 0 uses none.

    Raises:
        TraceError: no path holds a trace that can be used, a pipe is named twice, or the output cannot be written.
    """
    twice = pipes.named_twice(paths)
    if twice is not None:
        raise TraceError(twice, f"{pipes.READ_ONCE}, but it is named twice")
    found = _Found()
    began = time.perf_counter()
    with WorkerPool(processes) as pool:
        run = _Run(_open_cache(found) if cache else None, pool, progress, _total_bytes(paths) if progress else None)
        for path in paths:
            run.path(os.fspath(path), found)
        if not found.stores:
            raise nothing_found(paths, found.errors, found.sources)
        found.warnings += [
            TraceWarning("skipped_file", f"{error.path} was skipped: {error.reason}", source=error.path)
            for error in found.errors
        ]
        if asks_for_ranks(paths, len(found.stores)):
            found.warnings += ranks.set_warnings([store.metadata for store in found.stores])
        stores = tuple(found.stores) if output is None else write_output(found.stores, output)
        effort = Effort(time.perf_counter() - began, run.text_bytes, peak_memory() + pool.peak_bytes, pool.running)
        return IngestResult(stores, tuple(found.sources), tuple(found.warnings), effort)


def asks_for_ranks(paths: Sequence[str], stores: int) -> bool:
    """Whether the input is meant to be the ranks of a job, so that gaps among them are worth a word."""
    folders = (Path(path) for path in paths if Path(path).is_dir())
    return len(paths) > 1 or stores > 1 or any(not (folder / METADATA_FILE).exists() for folder in folders)


def _open_cache(found: _Found) -> Cache | None:
    try:
        return Cache.open()
    except OSError as error:
        message = f"the cache cannot be used ({error.strerror or error}): the trace is read anew each time"
        found.warnings.append(TraceWarning("no_cache", message))
        return None


def nothing_found(paths: Sequence[str], errors: Sequence[TraceError], sources: Sequence[Source]) -> TraceError:
    """Return the error for input without any usable trace."""
    if errors:
        first, more = errors[0], len(errors) - 1
        return TraceError(first.path, f"{first.reason} (and {more} more)") if more else first
    reasons = sorted({source.skipped for source in sources if source.skipped})
    why = f": {'; '.join(reasons[:3])}" if reasons else ""
    return TraceError(", ".join(paths) or "input", f"no trace found{why}")


class _Run:
    """One call of ``ingest``."""

    def __init__(self, cache: Cache | None, pool: WorkerPool, progress: Progress | None, total: int | None) -> None:
        self.text_bytes = 0
        self._cache = cache
        self._pool = pool
        self._progress = progress
        self._total = total
        self._before = 0

    def path(self, path: str, found: _Found) -> None:
        """Read one path as given."""
        try:
            if pipes.is_pipe(path):
                self._attempt(path, found, lambda: self._pipe(path))
                return
            if remote.is_remote(path):
                for name, size, opener in remote.files(path):
                    self._attempt(name, found, lambda: self._stream(name, size, opener))  # noqa: B023
                return
            if not Path(path).is_dir():
                self._file(path, found, chosen=True)
                return
            if (Path(path) / METADATA_FILE).exists():
                found.take(_store(path))
                return
            for name, is_store in inputs.directory_entries(path):
                if is_store:
                    found.take(_store(name))
                else:
                    self._file(name, found, chosen=False)
        except TraceError as error:
            found.errors.append(error)

    def _file(self, path: str, found: _Found, *, chosen: bool) -> None:
        reason = None if chosen else inputs.by_name(path)
        if reason is not None:
            found.sources.append(Source(path, size_of(path), "unknown", None, 0, skipped=reason))
            return
        self._attempt(path, found, lambda: self._local(path), chosen=chosen)

    def _attempt(self, path: str, found: _Found, read: Callable[[], Loaded], *, chosen: bool = True) -> None:
        """Read one file; a file that cannot be used is noted, and the others are still read."""
        try:
            found.take(read())
            self._before += size_of(path)
            self._report(0)
        except NoTraceError as error:
            found.sources.append(_skipped(error))
            if chosen:
                found.errors.append(error)
        except TraceError as error:
            found.sources.append(_skipped(error))
            found.errors.append(error)

    def _local(self, path: str) -> Loaded:
        status = inputs.check_file(path)
        if status.st_size == 0:
            raise TraceError(path, EMPTY)
        with inputs.opened(path, self._report) as plain, named_in_errors(path):
            if self._cache is None:
                return self._build(plain, status.st_size, None)
            key = self._cache.key(path, status, plain.source)
            loaded = self._cache.load(key, path)
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
            size: bytes as stored; null where they are not known beforehand.
            key: of the entry; null for a temporary directory.
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
        for found in inputs.traces_in(plain, size, chosen=True):
            entry.warnings += found.problems
            if found.plain is None:
                entry.skipped.append(Source(found.path, found.size, "unknown", None, 0, skipped=found.skipped))
                continue
            target = directory / str(len(entry.stores))
            target.mkdir()
            try:
                store = read_trace(found.plain, found.size, target, self._pool, before=self.text_bytes)
                self.text_bytes += store.metadata.text_bytes
            except TraceError as error:
                shutil.rmtree(target, ignore_errors=True)
                errors.append(error)
                entry.skipped.append(replace(_skipped(error), bytes=found.size))
            else:
                entry.stores.append(target.name)
        if not entry.stores:
            if errors:
                raise errors[0]
            reasons = "; ".join(sorted({source.skipped or "" for source in entry.skipped})[:3])
            raise TraceError(plain.path, f"no trace in it{': ' + reasons if reasons else ''}")
        return entry


def _skipped(error: TraceError) -> Source:
    return Source(error.path, size_of(error.path), "unknown", None, 0, skipped=error.reason)


def size_of(path: str) -> int:
    """Return a file's size, 0 for what is no file."""
    try:
        return Path(path).stat().st_size if path != pipes.STANDARD_INPUT and Path(path).is_file() else 0
    except (OSError, ValueError):
        return 0


def _total_bytes(paths: Sequence[str]) -> int | None:
    """Return how many bytes there are to read, or null where that is not known beforehand."""
    if any(remote.is_remote(path) or pipes.is_pipe(path) for path in paths):
        return None
    names = [name for path in paths for name in _files(path)]
    return sum(size_of(name) for name in names if inputs.by_name(name) is None)


def _files(path: str) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    return [name for name, is_store in inputs.directory_entries(path) if not is_store]


def _store(path: str) -> Loaded:
    store = Store.read(Path(path))
    source = replace(store.metadata.source, path=path, format="store")
    return Loaded((replace(store, metadata=replace(store.metadata, source=source)),), (), ())


def _scratch(cache: Cache | None, path: str) -> Scratch:
    assert cache is not None
    try:
        return cache.scratch()
    except OSError as error:
        raise TraceError(path, f"the cache cannot be written: {error.strerror or error}") from error


def _temporary() -> Scratch:
    return Scratch(Path(tempfile.gettempdir()))
