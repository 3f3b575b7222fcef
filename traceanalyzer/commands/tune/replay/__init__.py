"""``traceanalyzer tune replay``."""
