"""``traceanalyzer diff``."""
