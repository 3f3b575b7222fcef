"""``traceanalyzer gpus``."""
