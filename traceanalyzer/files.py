"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from traceanalyzer.problems import TraceError


@contextmanager
def written_whole(path: Path, *, make_folder: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block ends, and vanishes when the block fails.

    Its permissions are those of any new file. A link is followed. What is not a file (/dev/None, a pipe) is written to
    as it is: it must not be replaced.

    Raises:
        TraceError: it cannot be written.
    """
    try:
        if _is_special(path):
            with path.open("wb") as out:
                yield out
            return
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with _renamed_to(path.resolve()) as out:
            yield out
    except OSError as error:
        raise TraceError(str(path), f"cannot be written: {error.strerror or error}") from error


@contextmanager
def _renamed_to(path: Path) -> Iterator[BinaryIO]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        temporary.chmod(permissions_of_new(0o666))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    """Whether a device, pipe or socket stands at the path."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def write_whole(path: Path, data: bytes | str, *, make_folder: bool = False) -> None:
    """Write a file; text as UTF-8.

    Raises:
        TraceError: it cannot be written.
    """
    with written_whole(path, make_folder=make_folder) as out:
        out.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


def permissions_of_new(asked: int) -> int:
    """Return what the system leaves of the permissions that are asked for a new file or directory."""
    mask = os.umask(0)
    os.umask(mask)
    return asked & ~mask
