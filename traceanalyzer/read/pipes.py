"""Pipes as input: standard input, named pipes, and what a shell puts in the place of ``<(command)``.

A pipe gives its bytes once, forwards, and has neither a size nor an identity that a cache could go by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from traceanalyzer.problems import TraceError, whole_text
from traceanalyzer.read.container import Plain
from traceanalyzer.read.input_path import STANDARD_INPUT

PIPE_BYTES = 1 << 20
"""What a pipe may hold where the system allows it: who writes need not wait while a window is decoded."""

READ_ONCE = "a pipe can be read only once"


@contextmanager
def opened(path: str, on_read: Callable[[int], None] | None = None) -> Iterator[Plain]:
    """Open a pipe for reading as plain text; a named one waits for somebody to write to it.

    Raises:
        TraceError: it cannot be opened, or standard input is a terminal.
    """
    if path == STANDARD_INPUT:
        yield Plain(path, cast(BinaryIO, _Forwards(_standard_input())), on_read)
        return
    try:
        with Path(path).open("rb") as file:
            yield Plain(whole_text(path), cast(BinaryIO, _Forwards(file)), on_read)
    except OSError as error:
        raise TraceError(path, (error.strerror or str(error)).lower()) from error


def _standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise TraceError(STANDARD_INPUT, "standard input is closed")
    if sys.stdin.isatty():
        raise TraceError(STANDARD_INPUT, "standard input is a terminal: pipe a trace into it, or name a file")
    return sys.stdin.buffer


class _Forwards:
    """A stream that is read from where it stands, also where it is a file that could be read again from its start."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        with suppress(ImportError, AttributeError, OSError, ValueError):
            import fcntl

            fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes, fewer at the end."""
        return self._stream.read(size)

    def seekable(self) -> bool:
        """No."""
        return False
