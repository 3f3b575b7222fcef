"""``traceanalyzer tune verify``."""
