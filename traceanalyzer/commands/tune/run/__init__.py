"""``traceanalyzer tune run``."""
