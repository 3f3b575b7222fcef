"""This project's own sweep files: JSON lines, one line per candidate and round, as ``formats.sweep`` defines them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from traceanalyzer.commands.tune.formats.sweep import SCHEMA, SweepPoint, parse_lines
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.problems import TraceWarning

NAME = "traceanalyzer"
TITLE = "a sweep file of traceanalyzer (JSON lines)"

_FAMILY = SCHEMA.rpartition("/")[0] + "/"
_FIRST_LINES = 20


def recognises(source: SweepSource) -> bool:
    """Return whether one of the first lines names the schema, of whatever version."""
    return any(_schema(line).startswith(_FAMILY) for line in source.text.split("\n", _FIRST_LINES)[:_FIRST_LINES])


def read(source: SweepSource) -> tuple[tuple[SweepPoint, ...], tuple[TraceWarning, ...]]:
    """Return every usable point; rows follow from the concurrency where only that is known.

    Raises:
        TraceError: the file is of another version of the format.
    """
    schema = next(s for line in source.text.split("\n") if (s := _schema(line)).startswith(_FAMILY))
    if schema != SCHEMA:
        raise source.error(f"is of schema {schema}; this version reads {SCHEMA}")
    points, warnings = parse_lines(source.text, source.path)
    return tuple(_with_rows(point, source.top_k) for point in points), warnings


def _schema(line: str) -> str:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("schema")) if isinstance(value, dict) else ""


def _with_rows(point: SweepPoint, top_k: int | None) -> SweepPoint:
    if point.m is not None or top_k is None or point.concurrency is None:
        return point
    return replace(point, m=point.concurrency * top_k, shape={**point.shape, "top_k": top_k})
