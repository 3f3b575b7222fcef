"""Windows decoded on all cores: by this process and by workers, since JSON decoding holds the interpreter's lock."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from traceanalyzer.read.trace_text import Window
from traceanalyzer.read.window import PartWriter, WindowDecoder, WindowReport
from traceanalyzer.read.worker import WindowTask
from traceanalyzer.workers import Worker, WorkerError

MAX_PROCESSES = 4
"""More would only wait for the process that decompresses and cuts, and each takes memory."""

MODULE = "traceanalyzer.read.worker"


class ListEndedError(Exception):
    """The event list ended in a window that was not the last: read again with ``careful``."""


class WorkerPool:
    """Workers that are started when they are first needed and shared by all traces of a run."""

    def __init__(self, processes: int | None = None) -> None:
        self._processes = _sensible() if processes is None else processes
        self._workers: list[Worker] | None = None

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
            worker.close()
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
        for worker in self._workers:
            worker.start()
        return WindowDistribution(self._workers, directory).decode(windows)


def _sensible() -> int:
    """Return how many workers suit the machine: one per core, but for the core that this process decodes on itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, MAX_PROCESSES)


def _start(processes: int) -> list[Worker]:
    """Start workers; none where the system does not allow it."""
    environment = {"POLARS_MAX_THREADS": "1"}
    workers = [Worker(MODULE, environment=environment, replaced=False) for _ in range(processes)]
    try:
        for worker in workers:
            worker.start()
    except OSError:
        for worker in workers:
            worker.close()
        return []
    return workers


def _ask(worker: Worker, task: WindowTask, data: bytes | memoryview = b"") -> Any:
    """Have a worker do a task.

    Raises:
        OSError: it could not write.
        WorkerError: it failed otherwise.
    """
    try:
        return worker.ask(task, payload=data, kind=WindowReport | None)
    except WorkerError as failure:
        if failure.errno is None:
            raise
        raise OSError(failure.errno, os.strerror(failure.errno)) from failure


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


class WindowDistribution:
    """The decoding of one trace: a thread for each worker feeds it; what they cannot take at once is decoded here."""

    def __init__(self, workers: list[Worker], directory: Path) -> None:
        self._workers = workers
        self._directory = directory
        self._waiting: queue.Queue[Window | None] = queue.Queue(maxsize=len(workers))
        self._reports: list[WindowReport] = []
        self._errors: list[Exception] = []
        self._stopped = False

    def decode(self, windows: Iterable[Window]) -> list[WindowReport]:
        """Decode windows here and by the workers, and report on each."""
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
        """Wait for a window; None when there are no more, or when another worker has failed."""
        while not (self._errors or self._stopped):
            with suppress(queue.Empty):
                return self._waiting.get(timeout=0.2)
        return None

    def _serve(self, number: int, worker: Worker) -> None:
        try:
            _ask(worker, WindowTask(directory=os.fsencode(self._directory), prefix=f"w{number}-"))
            while (window := self._next()) is not None:
                data = window.view
                task = WindowTask(number=window.number, offset=window.offset, line=window.line, last=window.last)
                del window
                self._take(_ask(worker, task, data))
            _ask(worker, WindowTask(flush=True))
        except Exception as error:
            self._errors.append(error)
