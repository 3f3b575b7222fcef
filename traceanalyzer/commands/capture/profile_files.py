"""The trace files that a session left: what is in the directory now and was not before."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.files import written_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.read.inputs import by_name

SUFFIXES = (".json", ".json.gz")
POLL = 0.25
"""Seconds between looks at the directory."""

SETTLE = 2.0
"""Seconds without a change after which files count as written; chosen, not fitted."""


@dataclass(frozen=True)
class FileState:
    """Size and time of change of a file."""

    size: int
    changed_ns: int


Snapshot = Mapping[Path, FileState]


def snapshot(folder: Path) -> Snapshot:
    """List the workers' trace files below a folder; a folder that is not there holds none."""
    files: dict[Path, FileState] = {}
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.name.endswith(SUFFIXES) and by_name(str(path)) is None:
            try:
                state = path.stat()
            except OSError:
                continue
            files[path] = FileState(state.st_size, state.st_mtime_ns)
    return files


def wait_for_new(folder: Path, before: Snapshot, *, timeout: float) -> tuple[Path, ...]:
    """Wait until new or changed files are there and none has changed for ``SETTLE`` seconds.

    Returns:
        their paths in order of name; files still growing when time is up are included.

    Raises:
        TraceError: none appeared in time.
    """
    deadline = time.monotonic() + timeout
    last: dict[Path, FileState] = {}
    since = time.monotonic()
    while True:
        now = {path: state for path, state in snapshot(folder).items() if before.get(path) != state}
        if now != last:
            last, since = now, time.monotonic()
        settled = any(state.size for state in last.values()) and time.monotonic() - since >= SETTLE
        if settled or (time.monotonic() >= deadline and last):
            return tuple(sorted(last))
        if time.monotonic() >= deadline:
            raise TraceError(
                str(folder),
                f"no new trace of a worker within {timeout:g} s although the server stopped its profiler without an "
                "error; is this the directory the server writes to (torch_profiler_dir), and did the profiler's "
                "iteration limits leave steps to record?",
            )
        time.sleep(POLL)


def rename(files: tuple[Path, ...], name: str, separator: str) -> tuple[tuple[Path, ...], str | None]:
    """Begin the names of new files with ``name``, where the server has not done so.

    Returns:
        the paths, and why some kept their names (None when none did).
    """
    renamed: list[Path] = []
    problem: str | None = None
    for path in files:
        target = path.with_name(_named(path, name, separator))
        if target.exists():
            renamed.append(path)
            continue
        try:
            renamed.append(path.rename(target))
        except OSError as error:
            renamed.append(path)
            problem = f"files keep the server's names ({error.strerror or error})"
    return tuple(renamed), problem


def copy(files: tuple[Path, ...], folder: Path, name: str, separator: str) -> tuple[Path, ...]:
    """Copy files into a folder under names that begin with ``name``; a copy appears whole or not at all.

    Raises:
        TraceError: the folder cannot be written.
    """
    copies = []
    for path in files:
        copies.append(folder / _named(path, name, separator))
        with written_whole(copies[-1], make_folder=True) as out, path.open("rb") as source:
            shutil.copyfileobj(source, out)
    return tuple(copies)


def _named(path: Path, name: str, separator: str) -> str:
    """Return a file's name, begun with ``name`` where it does not begin so already."""
    return path.name if path.name.startswith(name) else f"{name}{separator}{path.name}"
