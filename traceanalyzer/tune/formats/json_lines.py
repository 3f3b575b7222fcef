"""This project's own sweep files: JSON lines, as ``sweep`` defines them."""

from __future__ import annotations

import json
from typing import Any

from traceanalyzer.tune.formats.gather import Gatherer, scalars
from traceanalyzer.tune.formats.source import Source
from traceanalyzer.tune.sweep import SCHEMA, Point

NAME = "traceanalyzer"
TITLE = "a sweep file of traceanalyzer (JSON lines)"

_OWN = ("schema", "kernel", "shape", "config", "samples_ms", "failure", "device", "arch", "versions")


def recognises(source: Source) -> bool:
    """Return whether one of the first lines is a point or names the schema."""
    for line in source.text.split("\n", 10)[:10]:
        value = _decoded(line)
        if isinstance(value, dict) and ("samples_ms" in value or str(value.get("schema", "")).startswith("traceanal")):
            return True
    return False


def read(source: Source, into: Gatherer) -> None:
    """Add every usable line.

    Raises:
        TraceError: the file is of another version of the format.
    """
    for number, line in enumerate(source.text.split("\n"), start=1):
        if not line.strip():
            continue
        value = _decoded(line)
        if not isinstance(value, dict):
            into.malformed("not a JSON object", number)
            continue
        schema = value.get("schema", SCHEMA)
        if schema != SCHEMA:
            raise source.error(f"line {number} is of schema {schema!r}; this version reads {SCHEMA!r}")
        reason = _fault(value)
        if reason:
            into.malformed(reason, number)
        else:
            into.add(_point(value), value.get("samples_ms") or [], number)


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _fault(value: dict[str, Any]) -> str | None:
    """Return why a line is no point."""
    for key in ("shape", "config"):
        if scalars(value.get(key)) is None:
            return f"{key!r} is missing or holds more than plain values"
    if not value["config"]:
        return "the configuration is empty"
    m = value["shape"].get("m")
    if m is not None and (not isinstance(m, int) or isinstance(m, bool) or m < 1):
        return f"m = {m!r} is not a positive whole number"
    if not isinstance(value.get("samples_ms", []), list | None):
        return "'samples_ms' is not a list"
    return None


def _point(value: dict[str, Any]) -> Point:
    versions = value.get("versions")
    return Point(
        shape=value["shape"],
        config=value["config"],
        kernel=_text(value.get("kernel")),
        failure=_text(value.get("failure")),
        device=_text(value.get("device")),
        arch=_text(value.get("arch")),
        versions={str(k): str(v) for k, v in versions.items()} if isinstance(versions, dict) else {},
        notes={key: item for key, item in value.items() if key not in _OWN},
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
