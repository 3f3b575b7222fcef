"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from traceanalyzer.problems import TraceError


@contextmanager
def written_whole(path: Path, *, make_folder: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block ends, and vanishes when the block fails.

    Its permissions are those of any new file.

    Args:
        path: the file.
        make_folder: whether a missing folder is made; else it is an error.

    Raises:
        TraceError: it cannot be written.
    """
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
    except OSError as error:
        raise TraceError(str(path), f"cannot be written: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise TraceError(str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | str, *, make_folder: bool = False) -> None:
    """Write a file; text as UTF-8.

    Raises:
        TraceError: it cannot be written.
    """
    with written_whole(path, make_folder=make_folder) as out:
        out.write(data.encode() if isinstance(data, str) else data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
