"""What a trace file says about itself besides its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from traceanalyzer.problems import TraceWarning


@dataclass(frozen=True)
class TraceSource:
    """One file of the input.

    Attributes:
        path: as given, with ``archive!member`` for a member of an archive.
        bytes: size on disk (of the member as stored, for archives).
        format: ``json``, ``store`` or ``unknown``.
        compression: ``gzip``, ``zip``, ``tar`` ... or None.
        events: events read from it.
        recovered_events: events saved from a damaged file; None when it was sound.
        skipped: why the file holds no trace, or None.
    """

    path: str
    bytes: int
    format: str
    compression: str | None
    events: int
    recovered_events: int | None = None
    skipped: str | None = None

    def renamed(self, old: str, new: str) -> TraceSource:
        """Return the same source with its path as given now."""
        return replace(self, path=new + self.path[len(old) :]) if self.path.startswith(old) else self


@dataclass(frozen=True)
class TraceMetadata:
    """Facts about one rank's trace that are not events.

    Attributes:
        source: the file the trace came from.
        base_ns: start of the earliest event in the file's own clock; event times are relative to it.
        base_time_ns: the file's ``baseTimeNanoseconds`` (added to the file clock gives Unix time), or None.
        device_properties: the file's ``deviceProperties``, one mapping per GPU.
        distributed: the file's ``distributedInfo``, or an empty mapping.
        rank: from distributedInfo or the file name; None when neither tells.
        rank_source: ``trace``, ``filename`` or None.
        world_size: from distributedInfo; None when unknown.
        parallel: dp, pp, tp, ep (and dcp) ranks that the file name tells, or None.
        process_names, thread_names: labels from metadata events, by pid and by ``pid/tid``.
        properties: the remaining scalar keys at the file's root (versions, flags, trace id).
        oversize_ids: ids beyond 64 bit, as text, by the number that replaces them in the frames.
        text_bytes: size of the trace's text, decompressed.
        warnings: what was odd about the file.
    """

    source: TraceSource
    base_ns: int
    base_time_ns: int | None = None
    device_properties: tuple[dict[str, Any], ...] = ()
    distributed: dict[str, Any] = field(default_factory=dict)
    rank: int | None = None
    rank_source: str | None = None
    world_size: int | None = None
    parallel: dict[str, int] | None = None
    process_names: dict[str, str] = field(default_factory=dict)
    thread_names: dict[str, str] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    oversize_ids: dict[int, str] = field(default_factory=dict)
    text_bytes: int = 0
    warnings: tuple[TraceWarning, ...] = ()
