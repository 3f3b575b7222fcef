"""``traceanalyzer tune plan``."""
