"""``traceanalyzer serving``."""
