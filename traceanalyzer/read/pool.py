"""Windows decoded on all cores: by this process and by workers, since JSON decoding holds the interpreter's lock."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from traceanalyzer.read.document import Window
from traceanalyzer.read.window import PartWriter, WindowDecoder, WindowReport
from traceanalyzer.read.worker import (
    Answer,
    Task,
    receive,
    send,
)

MAX_PROCESSES = 4
"""More would only wait for the process that decompresses and cuts, and each takes memory."""

PIPE_BYTES = 1 << 20
START = "import sys; sys.path[:] = sys.argv[1:]; from traceanalyzer.read.worker import main; main()"


class ListEndedError(Exception):
    """The event list ended in a window that was not the last: read again with ``careful``."""


class WorkerError(RuntimeError):
    """A worker process could not do its work, or died."""


class WorkerPool:
    """Workers that are started when they are first needed and shared by all traces of a run."""

    def __init__(self, processes: int | None = None) -> None:
        self._processes = _sensible() if processes is None else processes
        self._workers: list[_Worker] | None = None

    @property
    def peak_bytes(self) -> int:
        """Peak memory of the workers together (the sum of their peaks)."""
        return sum(worker.peak_bytes for worker in self._workers or ())

    @property
    def running(self) -> int:
        """How many workers were started."""
        return len(self._workers or ())

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers or ():
            worker.stop()
        self._workers = None

    def decode(self, windows: Iterable[Window], directory: Path) -> list[WindowReport]:
        """Decode windows, store their rows in ``directory``, and report on each.

        Raises:
            OSError: a worker could not write.
            WorkerError: a worker failed otherwise.
            ListEndedError: see there.
        """
        if self._workers is None:
            self._workers = _start(self._processes)
        if not self._workers:
            return decode_here(windows, directory, "p")
        return _Run(self._workers, directory).decode(windows)


def _sensible() -> int:
    """Return how many workers suit the machine: one a core, but for the core that this process decodes on itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, MAX_PROCESSES)


def _start(processes: int) -> list[_Worker]:
    """Start workers; none where the system does not allow it."""
    workers: list[_Worker] = []
    try:
        workers.extend(_Worker() for _ in range(processes))
    except OSError:
        for worker in workers:
            worker.stop()
        return []
    return workers


def decode_here(windows: Iterable[Window], directory: Path, prefix: str = "h") -> list[WindowReport]:
    """Do the workers' work in this process.

    Raises:
        ListEndedError: see there.
    """
    writer = PartWriter(directory, prefix)
    decoder = WindowDecoder(writer)
    reports = []
    for window in windows:
        reports.append(decoder.decode(window))
        if reports[-1].list_ended:
            raise ListEndedError
    writer.flush()
    return reports


class _Worker:
    """One process and its pipes."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        environment = os.environ | {"POLARS_MAX_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._to = cast(BinaryIO, self._process.stdin)
        self._from = cast(BinaryIO, self._process.stdout)
        with suppress(ImportError, AttributeError, OSError):
            import fcntl

            fcntl.fcntl(self._to.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def ask(self, task: Task, data: bytes | memoryview = b"") -> WindowReport | None:
        """Send a task and wait for the answer."""
        try:
            send(self._to, task, data)
            body = receive(self._from)
        except OSError:
            body = None
        if body is None:
            raise WorkerError("a worker process ended unexpectedly (out of memory?)")
        answer = msgspec.msgpack.decode(body, type=Answer)
        self.peak_bytes = answer.peak_bytes
        if answer.errno is not None:
            raise OSError(answer.errno, answer.error)
        if answer.error is not None:
            raise WorkerError(answer.error)
        return answer.report

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        with suppress(OSError):
            self._to.close()
        self._from.close()
        self._process.wait()


class _Run:
    """The decoding of one trace: a thread for each worker feeds it; what they cannot take at once is decoded here."""

    def __init__(self, workers: list[_Worker], directory: Path) -> None:
        self._workers = workers
        self._directory = directory
        self._waiting: queue.Queue[Window | None] = queue.Queue(maxsize=len(workers))
        self._reports: list[WindowReport] = []
        self._errors: list[Exception] = []
        self._stopped = False

    def decode(self, windows: Iterable[Window]) -> list[WindowReport]:
        threads = [
            threading.Thread(target=self._serve, args=(number, worker), daemon=True)
            for number, worker in enumerate(self._workers)
        ]
        writer = PartWriter(self._directory, "m")
        decoder = WindowDecoder(writer)
        for thread in threads:
            thread.start()
        try:
            for window in windows:
                if self._errors:
                    break
                try:
                    self._waiting.put_nowait(window)
                except queue.Full:
                    self._take(decoder.decode(window))
            writer.flush()
        except BaseException:
            self._stopped = True
            raise
        finally:
            # Also where this process failed: no thread may use a worker's pipes when the next trace does.
            for _ in threads:
                self._put(None)
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[0]
        return self._reports

    def _take(self, report: WindowReport) -> None:
        self._reports.append(report)
        if report.list_ended:
            raise ListEndedError

    def _put(self, window: Window | None) -> None:
        """Hand a window over, unless the workers have failed and nobody will take it."""
        while not (self._errors or self._stopped):
            with suppress(queue.Full):
                self._waiting.put(window, timeout=0.2)
                return

    def _next(self) -> Window | None:
        """Wait for a window; null when there are no more, or when another worker has failed."""
        while not (self._errors or self._stopped):
            with suppress(queue.Empty):
                return self._waiting.get(timeout=0.2)
        return None

    def _serve(self, number: int, worker: _Worker) -> None:
        try:
            worker.ask(Task(directory=str(self._directory), prefix=f"w{number}-"))
            while (window := self._next()) is not None:
                data = window.view
                task = Task(
                    number=window.number, offset=window.offset, line=window.line, size=len(data), last=window.last
                )
                del window
                report = worker.ask(task, data)
                if report is None:
                    continue
                self._take(report)
            worker.ask(Task(flush=True))
        except Exception as error:
            self._errors.append(error)
