"""Ingest spread over a Ray cluster: one task per file, for what one machine cannot hold or read fast enough.

Ray is optional (``pip install traceanalyzer[ray]``). Workers need the same version of traceanalyzer, and the paths must
mean the same files to them: a shared file system or URLs. Stores are written to the output by the workers themselves;
a task whose worker dies is run again elsewhere, and an unfinished store is never taken for a whole one, because it gets
its final name (on an object store: its manifest) last.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read import inputs, remote
from traceanalyzer.read.ingest import (
    Effort,
    IngestResult,
    asks_for_ranks,
    ingest,
    nothing_found,
    skipped_file,
    without_trace,
)
from traceanalyzer.read.input_path import InputPath, input_path
from traceanalyzer.read.metadata import TraceSource
from traceanalyzer.read.rank_of_file import set_warnings
from traceanalyzer.read.scratch import Scratch
from traceanalyzer.read.store import METADATA_FILE, Store
from traceanalyzer.read.streaming import NoTraceError

RETRIES = 3
"""Times that a task is run again after its worker died."""


@dataclass(frozen=True)
class FileOutcome:
    """What a worker made of one file.

    Attributes:
        stores: where its stores lie, relative to the output.
        sources, warnings: as a local run of the file alone gives them.
        text_bytes, peak_bytes: what it took.
        error: why the file could not be used, or None.
        no_trace: whether that is only because it is not a trace.
    """

    stores: tuple[str, ...]
    sources: tuple[TraceSource, ...]
    warnings: tuple[TraceWarning, ...]
    text_bytes: int
    peak_bytes: int
    error: str | None = None
    no_trace: bool = False


Reader: TypeAlias = Callable[[str, str, str], FileOutcome]
"""path, output and the store's name there -> outcome; runs on a worker."""


def ingest_with_ray(
    paths: Sequence[str],
    *,
    output: str,
    address: str | None = None,
    processes: int | None = None,
    reader: Reader | None = None,
) -> IngestResult:
    """Read traces on a Ray cluster and return their stores, one per rank; frames equal those of the local engine.

    Args:
        paths: files, directories, archives and URLs, as seen by the workers.
        output: directory that all workers can write to, or the URL of an object store (its protocol's fsspec package
            must be installed). Earlier stores in it are refused.
        address: of a running cluster (``auto`` finds it); None starts one on this machine.
        processes: workers of a cluster started here; None takes one per core.
        reader: what a worker runs on a file; None for ``read_file``.

    Raises:
        TraceError: Ray is missing or unreachable, the output cannot be written, or no path holds a usable trace.
    """
    began = time.perf_counter()
    given = [input_path(path) for path in paths]
    listed = _listed(given)
    target = _Target(output)
    outcomes = _run(listed, target, address, processes, reader or read_file)
    return _assembled(given, listed, outcomes, target, time.perf_counter() - began)


@dataclass(frozen=True)
class _Listed:
    """A file to read, or one that is known to hold no trace."""

    path: str
    chosen: bool
    skipped: TraceSource | None = None


def _listed(paths: Sequence[InputPath]) -> list[_Listed]:
    """The files at the paths, in the order that the local engine reads them."""
    listed: list[_Listed] = []
    for given in paths:
        if given.kind == "pipe":
            reason = "a pipe cannot be read on other machines: save it where the workers can read it"
            raise TraceError(given.path, reason)
        if given.kind == "url":
            listed += [_Listed(name, chosen=True) for name, _, _ in remote.files(given.path)]
            continue
        for entry in given.entries():
            chosen = given.kind != "folder" or entry.kind == "store"
            why = None if chosen else inputs.by_name(entry.path)
            listed.append(_Listed(entry.path, chosen=chosen, skipped=without_trace(entry, why) if why else None))
    return listed


class _Target:
    """Where stores go: a directory that appears when all is done, or a prefix of an object store."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.remote = input_path(output).kind == "url"
        self._scratch: Scratch | None = None
        if self.remote:
            system, name = _file_system(output)
            if system.exists(name) and system.find(name):
                raise TraceError(output, "is not empty: choose another --output")
            return
        if Path(output).exists():
            raise TraceError(output, "exists already: choose another --output")
        try:
            Path(output).absolute().parent.mkdir(parents=True, exist_ok=True)
            self._scratch = Scratch(Path(output).absolute().parent)
        except OSError as error:
            raise TraceError(output, (error.strerror or str(error)).lower()) from error

    @property
    def written_to(self) -> str:
        """Where workers write."""
        return self.output if self._scratch is None else str(self._scratch.path)

    def publish(self, names: Sequence[str]) -> list[Store]:
        """Give stores their final place and open them; those of an object store are fetched for this process."""
        if self._scratch is None:
            return [self._fetched(name) for name in names]
        only = len(names) == 1
        whole = Scratch(Path(self.output).absolute().parent)
        for number, name in enumerate(names):
            for each in (self._scratch.path / name).iterdir():
                place = whole.path if only else whole.path / str(number)
                place.mkdir(exist_ok=True)
                each.rename(place / each.name)
        self._scratch.discard()
        whole.publish(Path(self.output), private=False)
        places = [Path(self.output) if only else Path(self.output) / str(number) for number in range(len(names))]
        return [Store.read(place) for place in places]

    def discard(self) -> None:
        """Remove what was written before an error."""
        if self._scratch is not None:
            self._scratch.discard()

    def _fetched(self, name: str) -> Store:
        system, prefix = _file_system(self.output)
        local = Scratch(Path(tempfile.gettempdir())).keep_until_exit()
        for path in system.find(f"{prefix}/{name}"):
            system.get_file(path, str(local / path.rsplit("/", 1)[-1]))
        return Store.read(local)


def _file_system(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        system, name = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise TraceError(url, f"cannot be opened: {error}") from error
    return system, name.rstrip("/")


def _run(
    listed: Sequence[_Listed], target: _Target, address: str | None, processes: int | None, reader: Reader
) -> list[FileOutcome | None]:
    """Run a task for each file that is to be read; None for the others."""
    ray = _ray()
    own = not ray.is_initialized()
    try:
        if own:
            _connect(ray, address, processes)
        task = ray.remote(max_retries=RETRIES)(reader)
        waiting = [
            None if each.skipped else task.remote(each.path, target.written_to, str(number))
            for number, each in enumerate(listed)
        ]
        return [None if each is None else ray.get(each) for each in waiting]
    except ray.exceptions.RayError as error:
        target.discard()
        raise TraceError(target.output, f"Ray could not finish: {str(error).splitlines()[0]}") from error
    except BaseException:
        target.discard()
        raise
    finally:
        if own:
            ray.shutdown()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise TraceError("ray", "is not installed: pip install 'traceanalyzer[ray]'") from error


def _connect(ray: Any, address: str | None, processes: int | None) -> None:
    try:
        if address is None:
            ray.init(num_cpus=processes, include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise TraceError(address or "ray", f"no Ray cluster: {str(error).splitlines()[0]}") from error


def read_file(path: str, output: str, name: str) -> FileOutcome:
    """Read one file and write its stores as ``name/0``, ``name/1`` ... below the output; runs on a worker."""
    try:
        read = ingest([path], cache=False, processes=0)
    except TraceError as error:
        return FileOutcome((), (), (), 0, 0, error=error.reason, no_trace=isinstance(error, NoTraceError))
    # What holds for the set of ranks is told once, for all files together.
    of_set = set_warnings([store.metadata for store in read.stores])
    names = tuple(f"{name}/{number}" for number in range(len(read.stores)))
    for store, place in zip(read.stores, names, strict=True):
        _deliver(store, output, place)
    return FileOutcome(
        names,
        read.sources,
        tuple(warning for warning in read.warnings if warning not in of_set),
        read.effort.text_bytes,
        read.effort.peak_bytes,
    )


def _deliver(store: Store, output: str, place: str) -> None:
    """Copy a store to the output so that it is seen whole or not at all."""
    if input_path(output).kind == "url":
        system, prefix = _file_system(output)
        for path in sorted(store.directory.iterdir(), key=lambda path: path.name == METADATA_FILE):
            system.makedirs(f"{prefix}/{place}", exist_ok=True)
            system.put_file(str(path), f"{prefix}/{place}/{path.name}")
        return
    target = Path(output) / place
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    shutil.copytree(store.directory, partial)
    # An earlier attempt may have come as far as this before its worker died.
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _assembled(
    paths: Sequence[InputPath],
    listed: Sequence[_Listed],
    outcomes: Sequence[FileOutcome | None],
    target: _Target,
    seconds: float,
) -> IngestResult:
    """Put the workers' outcomes together as the local engine does."""
    sources: list[TraceSource] = []
    warnings: list[TraceWarning] = []
    errors: list[TraceError] = []
    names: list[str] = []
    for each, outcome in zip(listed, outcomes, strict=True):
        if each.skipped is not None:
            sources.append(each.skipped)
        if outcome is None:
            continue
        names += outcome.stores
        sources += outcome.sources
        warnings += outcome.warnings
        if outcome.error is not None:
            sources.append(without_trace(input_path(each.path), outcome.error))
            if each.chosen or not outcome.no_trace:
                errors.append(TraceError(each.path, outcome.error))
    if not names:
        target.discard()
        raise nothing_found(paths, errors, sources)
    warnings += [skipped_file(error) for error in errors]
    stores = target.publish(names)
    if asks_for_ranks(paths, len(stores)):
        warnings += set_warnings([store.metadata for store in stores])
    done = [outcome for outcome in outcomes if outcome is not None]
    effort = Effort(
        seconds,
        text_bytes=sum(outcome.text_bytes for outcome in done),
        peak_bytes=max((outcome.peak_bytes for outcome in done), default=0),
        processes=len(done),
    )
    return IngestResult(tuple(stores), tuple(sources), tuple(warnings), effort)
