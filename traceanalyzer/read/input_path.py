"""What a path that a user gives stands for: decided here once, and asked by all that read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traceanalyzer.problems import TraceError, whole_text
from traceanalyzer.read.store import METADATA_FILE

STANDARD_INPUT = "-"
MAX_FILES = 100_000

PathKind = Literal["pipe", "url", "store", "folder", "file"]
"""``file`` also stands for what does not exist or cannot be looked at: reading it says why."""


@dataclass(frozen=True)
class InputPath:
    """A path and what it stands for.

    Attributes:
        path: as given, to be opened.
        kind: what lies there.
    """

    path: str
    kind: PathKind

    @property
    def shown(self) -> str:
        """The path as text that every document can hold: bytes that are not UTF-8 are written out."""
        return whole_text(self.path)

    @property
    def size(self) -> int:
        """Bytes of the file; 0 for what is not a file."""
        return size_of(self.path) if self.kind == "file" else 0

    def entries(self) -> Iterator[InputPath]:
        """Yield the files and stores at the path: those below a folder in order of name, else the path itself.

        Links to folders are not followed, and hidden files are left out.

        Raises:
            TraceError: there are too many.
        """
        if self.kind != "folder":
            yield self
            return
        count = 0
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if METADATA_FILE in files:
                folders.clear()
                yield InputPath(folder, "store")
                continue
            for name in sorted(files):
                full = str(Path(folder) / name)
                if name.startswith(".") or not _may_be_file(full):
                    continue
                count += 1
                if count > MAX_FILES:
                    raise TraceError(self.path, f"more than {MAX_FILES} files in it: name the trace's own directory")
                yield InputPath(full, "file")


def input_path(path: str | os.PathLike[str]) -> InputPath:
    """Say what a path stands for."""
    path = os.fspath(path)
    if path == STANDARD_INPUT:
        return InputPath(path, "pipe")
    scheme, separator, _ = path.partition("://")
    if separator and scheme.replace("+", "").isalnum():
        return InputPath(path, "url")
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return InputPath(path, "file")
    if stat.S_ISFIFO(mode):
        return InputPath(path, "pipe")
    if not stat.S_ISDIR(mode):
        return InputPath(path, "file")
    return InputPath(path, "store" if (Path(path) / METADATA_FILE).exists() else "folder")


def _may_be_file(path: str) -> bool:
    """Whether it is a file; true too where that cannot be told, so that reading it says why."""
    try:
        return Path(path).is_file()
    except OSError:
        return True


def is_file(path: str) -> bool:
    """Whether a file lies at a path; false where that cannot be told, as of names that are too long."""
    try:
        return path != STANDARD_INPUT and Path(path).is_file()
    except (OSError, ValueError):
        return False


def size_of(path: str) -> int:
    """Return a file's size, 0 for what is not a file."""
    try:
        return Path(path).stat().st_size if is_file(path) else 0
    except (OSError, ValueError):
        return 0


def named_twice(paths: Iterable[str]) -> str | None:
    """Return the first path that is a pipe which an earlier path is, too; None where there is none."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if input_path(path).kind != "pipe":
            continue
        identity = _identity(path)
        if identity in seen:
            return path
        seen.add(identity)
    return None


def _identity(path: str) -> tuple[int, int]:
    """Return what two names of one pipe have in common."""
    if path != STANDARD_INPUT:
        status = Path(path).stat()
        return status.st_dev, status.st_ino
    try:
        status = os.fstat(sys.stdin.fileno())
    except (OSError, AttributeError, ValueError):  # closed, or replaced by an object without a file
        return -1, -1
    return status.st_dev, status.st_ino
