"""``traceanalyzer ingest``."""
