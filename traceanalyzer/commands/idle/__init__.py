"""``traceanalyzer idle``."""
