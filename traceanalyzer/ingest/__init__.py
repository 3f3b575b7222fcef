"""Bytes to frames: containers, decoding, salvage, and the Parquet store."""

from traceanalyzer.ingest.ingest import Effort, IngestResult, ingest
from traceanalyzer.ingest.metadata import Source, TraceMetadata
from traceanalyzer.ingest.reading import Progress
from traceanalyzer.ingest.store import Store

__all__ = ["Effort", "IngestResult", "Progress", "Source", "Store", "TraceMetadata", "ingest"]
