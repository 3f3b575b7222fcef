"""``traceanalyzer tune import``."""
