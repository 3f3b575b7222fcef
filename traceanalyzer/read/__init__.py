"""Bytes to frames: containers, decoding, salvage, and the Parquet store."""

from traceanalyzer.read.ingest import Effort, IngestResult, ingest
from traceanalyzer.read.metadata import TraceMetadata, TraceSource
from traceanalyzer.read.store import Store
from traceanalyzer.read.streaming import Progress

__all__ = ["Effort", "IngestResult", "Progress", "Store", "TraceMetadata", "TraceSource", "ingest"]
