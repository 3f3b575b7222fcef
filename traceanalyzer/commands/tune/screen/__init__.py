"""``traceanalyzer tune screen``."""
