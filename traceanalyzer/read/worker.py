"""A worker process: takes windows on its standard input, stores their rows, answers with reports.

Workers are started as programs, not forked: polars has threads, and a forked process may hang in them; and unlike
multiprocessing's spawn this does not import the main module of whoever called. When the parent dies, the input
ends, and so does the worker.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from traceanalyzer.read.window import PartWriter, WindowDecoder, WindowReport

HEADER_BYTES = 4


class Task(msgspec.Struct):
    """What the parent wants done; a window's text follows as ``size`` bytes."""

    directory: str = ""
    prefix: str = ""
    number: int = -1
    offset: int = 0
    line: int | None = None
    size: int = 0
    last: bool = False
    flush: bool = False


class Answer(msgspec.Struct):
    """A report, or the error that prevented it; with the process's peak memory."""

    report: WindowReport | None = None
    peak_bytes: int = 0
    error: str | None = None
    errno: int | None = None


def send(out: BinaryIO, message: msgspec.Struct, payload: bytes | memoryview = b"") -> None:
    """Write a message, and the bytes that belong to it."""
    body = msgspec.msgpack.encode(message)
    out.write(len(body).to_bytes(HEADER_BYTES, "little") + body)
    if payload:
        out.write(payload)
    out.flush()


def receive(source: BinaryIO) -> bytes | None:
    """Read the body of a message, or None at the end."""
    header = source.read(HEADER_BYTES)
    return source.read(int.from_bytes(header, "little")) if len(header) == HEADER_BYTES else None


def main() -> None:
    """Serve the parent until it closes the pipe."""
    source, out = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints may end up among the answers
    reader = os.fdopen(os.dup(source.fileno()), "rb", buffering=1 << 20)
    served = _Served()
    while (body := receive(reader)) is not None:
        task = msgspec.msgpack.decode(body, type=Task)
        data = reader.read(task.size)
        if len(data) < task.size:
            break
        try:
            answer = Answer(served.do(task, data))
        except OSError as error:
            answer = Answer(error=str(error.strerror or error), errno=error.errno)
        except Exception as error:
            answer = Answer(error=f"{type(error).__name__}: {error}")
        del data
        answer.peak_bytes = peak_memory()
        send(out, answer)
    os._exit(0)  # the interpreter has nothing to tidy up


def peak_memory() -> int:
    """Return the most memory that this process has held, in bytes (0 where the system does not tell)."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Served:
    """The trace that is being decoded."""

    def __init__(self) -> None:
        self._writer: PartWriter | None = None
        self._decoder: WindowDecoder | None = None

    def do(self, task: Task, data: bytes) -> WindowReport | None:
        from traceanalyzer.read.document import Window

        if task.directory:
            self._writer = PartWriter(Path(task.directory), task.prefix)
            self._decoder = WindowDecoder(self._writer)
            return None
        assert self._writer is not None
        assert self._decoder is not None
        if task.flush:
            self._writer.flush()
            return None
        return self._decoder.decode(Window(task.number, task.offset, task.line, data, task.last))
