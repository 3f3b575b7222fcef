"""``traceanalyzer tune configs``."""
