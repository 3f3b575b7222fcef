"""An ingested trace on disk: Parquet row groups and a JSON file of metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from traceanalyzer.ingest.metadata import TraceMetadata

METADATA_FILE = "trace.json"
EVENTS_FILE = "events.parquet"


@dataclass(frozen=True)
class Store:
    """One rank's ingested trace in a directory."""

    directory: Path
    metadata: TraceMetadata

    @classmethod
    def read(cls, directory: Path) -> Store:
        """Open the store in a directory written earlier."""
        metadata = msgspec.json.decode((directory / METADATA_FILE).read_bytes(), type=TraceMetadata)
        return cls(directory, metadata)

    def scan(self) -> pl.LazyFrame:
        """Return the events, columns of EVENT_SCHEMA, times in the file's own clock."""
        return pl.scan_parquet(self.directory / EVENTS_FILE)
