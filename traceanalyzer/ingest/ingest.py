"""Paths in, stores out."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceanalyzer.ingest.metadata import Source, TraceMetadata
from traceanalyzer.ingest.schema import CATEGORY_SPELLINGS, EVENT_SCHEMA
from traceanalyzer.ingest.store import EVENTS_FILE, METADATA_FILE, Store
from traceanalyzer.problems import TraceError, TraceWarning


@dataclass(frozen=True)
class IngestResult:
    """What came of the paths a user gave."""

    stores: tuple[Store, ...]
    sources: tuple[Source, ...]
    warnings: tuple[TraceWarning, ...]


def ingest(paths: Sequence[str], *, output: Path | None = None, cache: bool = True) -> IngestResult:
    """Read traces and return their stores (one a rank)."""
    stores = tuple(_ingest_file(Path(path)) for path in paths)
    return IngestResult(stores, tuple(s.metadata.source for s in stores), ())


def _ingest_file(path: Path) -> Store:
    raw = path.read_bytes()
    compression = "gzip" if raw[:2] == b"\x1f\x8b" else None
    try:
        document = json.loads(gzip.decompress(raw) if compression else raw)
    except ValueError as error:
        raise TraceError(str(path), f"not JSON: {error}") from error
    root = document if isinstance(document, dict) else {"traceEvents": document}
    rows = [_row(i, e) for i, e in enumerate(root["traceEvents"]) if e.get("ph") == "X"]
    events = pl.DataFrame(rows, schema=EVENT_SCHEMA, orient="row")
    directory = Path(tempfile.mkdtemp(prefix="traceanalyzer-"))
    events.write_parquet(directory / EVENTS_FILE)
    distributed = root.get("distributedInfo") or {}
    metadata = TraceMetadata(
        source=Source(str(path), len(raw), "json", compression, len(root["traceEvents"])),
        base_ns=int(events["start_ns"].min() or 0),  # type: ignore[arg-type]
        base_time_ns=root.get("baseTimeNanoseconds"),
        device_properties=tuple(root.get("deviceProperties") or ()),
        distributed=distributed,
        rank=distributed.get("rank"),
        world_size=distributed.get("world_size"),
    )
    (directory / METADATA_FILE).write_bytes(msgspec.json.encode(metadata))
    return Store(directory, metadata)


def _row(index: int, event: dict[str, Any]) -> tuple[Any, ...]:
    args = event.get("args") or {}

    def text(key: str) -> str | None:
        return None if args.get(key) is None else json.dumps(args[key])

    category = str(event.get("cat"))
    return (
        index,
        CATEGORY_SPELLINGS.get(category.lower(), category),
        event.get("name"),
        str(event.get("pid")),
        str(event.get("tid")),
        round(float(event["ts"]) * 1000),
        round(float(event.get("dur", 0)) * 1000),
        args.get("device"),
        args.get("stream"),
        args.get("correlation"),
        args.get("External id"),
        text("grid"),
        text("block"),
        text("Input Dims"),
        text("Input type"),
        text("Concrete Inputs"),
        args.get("kernel"),
        None,
        None,
    )
