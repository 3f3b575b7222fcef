"""Worker processes that decode windows (placeholder: in this process)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from traceanalyzer.ingest.document import Window
from traceanalyzer.ingest.window import PartWriter, WindowDecoder, WindowReport


class WorkerPool:
    """Decodes windows."""

    def __init__(self, processes: int | None) -> None:
        self._processes = processes

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def decode(self, windows: Iterable[Window], directory: Path) -> list[WindowReport]:
        """Decode windows, store their rows, and report on each."""
        writer = PartWriter(directory, "p")
        decoder = WindowDecoder(writer)
        reports = [decoder.decode(window) for window in windows]
        writer.flush()
        return reports
