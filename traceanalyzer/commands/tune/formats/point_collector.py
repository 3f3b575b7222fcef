"""Collects points from any kind of file: cleans samples, pools duplicates, counts what is skipped."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.tile_config import Value
from traceanalyzer.problems import TraceWarning

TO_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
TO_MS |= {"seconds": 1e3, "microseconds": 1e-3, "nanoseconds": 1e-6}
"""Unit of a time in a file -> milliseconds."""

NO_USABLE_SAMPLE = "no usable timing"

_MESSAGES = {
    "malformed_points": "{count} entries are not usable measurements and were skipped; the first: {first}",
    "unusable_samples": "{count} timings that are not positive, finite numbers were left out; the first: {first}",
    "repeated_points": "{count} points repeat an earlier one, timings and all, and were skipped; the first: {first}",
    "pooled_points": "{count} points were measured again; their timings were pooled; the first: {first}",
    "unfinished_file": "{first}",
    "rows_are_tokens": "{first}",
    "inconsistent_median": "{count} stated medians differ from the median of their samples; the first: {first}",
}


class PointCollector:
    """Points in the order they are added, each thing measured once, with what was wrong counted."""

    def __init__(self) -> None:
        self._points: dict[tuple[str, ...], SweepPoint] = {}
        self._counts: dict[str, int] = {}
        self._first: dict[str, tuple[str, int | None]] = {}

    def add(
        self, point: SweepPoint, samples: Iterable[object], line: int | None = None, label: str | None = None
    ) -> None:
        """Add a point with the timings as the file has them.

        Args:
            point: without samples.
            samples: in milliseconds; what is not a positive finite number is left out and counted.
            line: where in the file, 1-based.
            label: what to call the entry in a warning.
        """
        name = label or json.dumps(dict(point.known_config))
        raw = list(samples)
        good = tuple(value for value in map(positive, raw) if value is not None)
        if len(good) < len(raw):
            self.count("unusable_samples", name, line, len(raw) - len(good))
        reason = point.reason or (NO_USABLE_SAMPLE if raw and not good else None)
        self._keep(replace(point, rounds=(good,) if good else (), reason=None if good else reason), name, line)

    def _keep(self, point: SweepPoint, name: str, line: int | None) -> None:
        key = point.key
        before = self._points.get(key)
        if before is None:
            self._points[key] = point
        elif not point.rounds or point.rounds[0] in before.rounds:
            self.count("repeated_points", name, line)
        else:
            if before.rounds:
                self.count("pooled_points", name, line)
            self._points[key] = replace(before, rounds=before.rounds + point.rounds, reason=None)

    def malformed(self, reason: str, line: int | None = None) -> None:
        """Count an entry that cannot be used."""
        self.count("malformed_points", reason, line)

    def count(self, code: str, what: str, line: int | None = None, number: int = 1) -> None:
        """Count something under a warning's code; the first one is kept as the example."""
        self._counts[code] = self._counts.get(code, 0) + number
        self._first.setdefault(code, (what, line))

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """What was gathered."""
        return tuple(self._points.values())

    def warnings(self, source: str) -> tuple[TraceWarning, ...]:
        """Return one warning for each kind of trouble."""
        return tuple(
            TraceWarning(
                code=code,
                message=_MESSAGES[code].format(count=count, first=self._first[code][0]),
                source=source,
                count=count,
                line=self._first[code][1],
            )
            for code, count in self._counts.items()
        )


def positive(value: object) -> float | None:
    """Return a positive finite number as a float; ``None`` for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def whole(value: object) -> int | None:
    """Return an integer as it is; ``None`` for everything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def scalars(values: Any) -> dict[str, Value] | None:
    """Return a mapping of JSON scalars with text keys; ``None`` where it is something else."""
    if not isinstance(values, Mapping):
        return None
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, int | float | str | None):
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return None
    return dict(values)


def number(text: str) -> Value:
    """Read a cell or token: an integer, a decimal number, or the text itself; ``None`` when empty."""
    stripped = text.strip()
    if not stripped:
        return None
    for kind in (int, float):
        try:
            value = kind(stripped)
            return value if math.isfinite(value) else stripped
        except (ValueError, OverflowError):
            continue
    return stripped
