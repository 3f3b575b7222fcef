"""``traceanalyzer export``."""
