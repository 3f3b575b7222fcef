"""``traceanalyzer tune policy``."""
