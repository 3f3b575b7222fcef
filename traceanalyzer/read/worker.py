"""A worker that takes windows of a trace, stores their rows and answers with reports."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from traceanalyzer.read.trace_text import Window
from traceanalyzer.read.window import PartWriter, WindowDecoder, WindowReport
from traceanalyzer.workers import serve


class WindowTask(msgspec.Struct):
    """What is to be done: begin a trace, decode the window whose text is the payload, or write what was collected."""

    directory: bytes = b""
    prefix: str = ""
    number: int = -1
    offset: int = 0
    line: int | None = None
    last: bool = False
    flush: bool = False


def main() -> None:
    """Serve the caller until it closes the pipe."""
    serve(_Served().do, WindowTask)


class _Served:
    """The trace that is being decoded."""

    def __init__(self) -> None:
        self._writer: PartWriter | None = None
        self._decoder: WindowDecoder | None = None

    def do(self, task: WindowTask, data: bytes) -> WindowReport | None:
        """Do a task; only windows are reported on."""
        if task.directory:
            self._writer = PartWriter(Path(os.fsdecode(task.directory)), task.prefix)
            self._decoder = WindowDecoder(self._writer)
            return None
        assert self._writer is not None
        assert self._decoder is not None
        if task.flush:
            self._writer.flush()
            return None
        return self._decoder.decode(Window(task.number, task.offset, task.line, data, task.last))
