"""Benchmarks; see ``ingest``."""
