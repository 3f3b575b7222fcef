"""``traceanalyzer roofline``."""
