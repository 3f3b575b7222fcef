"""``traceanalyzer hotspots``."""
