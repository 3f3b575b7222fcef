"""Results of serving benchmarks: reading, checking and comparing them."""

from traceanalyzer.serving.compare import Comparison, compare
from traceanalyzer.serving.read import Found, read
from traceanalyzer.serving.result import ServingResult

__all__ = ["Comparison", "Found", "ServingResult", "compare", "read"]
