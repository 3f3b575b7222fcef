"""The journal of a run: a sweep file that is appended to as results come, and read again to go on after a kill."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traceanalyzer.commands.tune.formats.sweep import SweepPoint, line_of, parse_rounds
from traceanalyzer.problems import TraceError, TraceWarning

FAILED_ROUND = -1
"""The round number under which a failure is written."""


class Journal:
    """What is known so far, in memory and, unless the path is ``None``, in a sweep file, made where absent.

    Raises:
        TraceError: the file cannot be read or written, or is not a sweep file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rounds: dict[tuple[str, ...], dict[int, SweepPoint]] = {}
        self.warnings: tuple[TraceWarning, ...] = ()
        if path is None:
            return
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            self._rounds, self.warnings = parse_rounds(text, str(path))
            if text.strip() and not self._rounds:
                raise TraceError(str(path), "is not a sweep file; give another name to --output")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                if text and not text.endswith("\n"):  # a line torn by a kill
                    file.write("\n")
        except OSError as error:
            raise TraceError(str(path), error.strerror or "cannot be written") from None

    def rounds_of(self, point: SweepPoint) -> dict[int, tuple[float, ...]]:
        """Return the samples that are known of a candidate, by round."""
        known = self._rounds.get(point.key, {})
        return {number: point.samples_ms for number, point in sorted(known.items()) if point.reason is None}

    def failure_of(self, point: SweepPoint) -> str | None:
        """Return why a candidate failed earlier, if it did."""
        failed = self._rounds.get(point.key, {}).get(FAILED_ROUND)
        return failed.reason if failed else None

    def add_round(self, point: SweepPoint, number: int, samples: Sequence[float]) -> None:
        """Keep the samples of one round."""
        self._keep(replace(point, rounds=(tuple(samples),)), number, samples)

    def add_failure(self, point: SweepPoint, reason: str) -> None:
        """Keep that a candidate failed."""
        self._keep(replace(point, reason=reason), FAILED_ROUND, ())

    def _keep(self, point: SweepPoint, number: int, samples: Sequence[float]) -> None:
        self._rounds.setdefault(point.key, {})[number] = point
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line_of(point, number, samples))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TraceError(str(self._path), error.strerror or "cannot be written") from None
