"""Segmentations kept beside an ingested trace, so that the next command need not cut it up again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec
import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment.recorded_work import RecordedWork
from traceanalyzer.segment.segmentation_result import BLOCK_SCHEMA, PLACEMENT_SCHEMA, STEP_SCHEMA, Segmentation
from traceanalyzer.trace import Trace

_NAME = "segmentation"
_PACKAGE = Path(__file__).parent.parent
_DECIDES = ("segment", "names", "words.py", "trace.py", "read/event_schema.py", "read/compute_ops.py")
"""Code that a segmentation follows from: a change of any of it makes what was kept out of date."""


def load(trace: Trace) -> Segmentation | None:
    """Return the segmentation kept with a trace, or None where there is none of this version."""
    version = algorithm_version()
    entry = trace.derived.read(_NAME, version) if trace.derived is not None and version is not None else None
    if entry is None:
        return None
    tables, facts = entry
    events = trace.device_events
    try:
        warnings, workload = msgspec.json.decode(facts, type=tuple[tuple[TraceWarning, ...], RecordedWork])
        steps, blocks, places = tables["steps"], tables["blocks"], tables["places"]
    except (KeyError, msgspec.MsgspecError):
        return None
    expected = ((steps, STEP_SCHEMA), (blocks, BLOCK_SCHEMA), (places, PLACEMENT_SCHEMA))
    if len(places) != len(events) or any(dict(frame.schema) != schema for frame, schema in expected):
        return None
    return Segmentation(steps, blocks, events.hstack(places), warnings, workload)


def keep(trace: Trace, cut: Segmentation) -> None:
    """Keep a segmentation with its trace, where that can be done."""
    version = algorithm_version()
    if trace.derived is None or version is None:
        return
    tables = {"steps": cut.steps, "blocks": cut.blocks, "places": cut.events.select(list(PLACEMENT_SCHEMA))}
    trace.derived.write(_NAME, version, tables, msgspec.json.encode((cut.warnings, cut.workload)))


@cache
def algorithm_version() -> str | None:
    """Return a hash of the code that decides a segmentation, and of the version of Polars; None where it is not known.

    A number raised by hand would be forgotten once, and old results be shown for new ones.
    """
    digest = hashlib.sha256(pl.__version__.encode())
    try:
        for path in sorted(path for name in _DECIDES for path in _sources(_PACKAGE / name)):
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError:
        return None
    return digest.hexdigest()[:32]


def _sources(path: Path) -> list[Path]:
    """Return a file, or the Python files below a directory.

    Raises:
        OSError: there is none, as in an installation without sources.
    """
    sources = [path] if path.is_file() else list(path.rglob("*.py"))
    if not sources:
        raise FileNotFoundError(str(path))
    return sources
