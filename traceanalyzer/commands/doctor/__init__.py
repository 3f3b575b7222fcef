"""``traceanalyzer doctor``."""
