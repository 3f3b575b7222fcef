"""Results of serving benchmarks: reading, checking and comparing them."""

from traceanalyzer.serving.comparison import ServingComparison, compare
from traceanalyzer.serving.read import ReadResults, read
from traceanalyzer.serving.serving_result import ServingResult

__all__ = ["ReadResults", "ServingComparison", "ServingResult", "compare", "read"]
