"""``traceanalyzer blocks``."""
