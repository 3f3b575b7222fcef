"""``traceanalyzer name``."""
