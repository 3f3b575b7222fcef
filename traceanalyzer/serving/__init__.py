"""Results of serving benchmarks: reading, checking and comparing them."""

from traceanalyzer.serving.comparison import Comparison, compare
from traceanalyzer.serving.read import Found, read
from traceanalyzer.serving.serving_result import ServingResult

__all__ = ["Comparison", "Found", "ServingResult", "compare", "read"]
