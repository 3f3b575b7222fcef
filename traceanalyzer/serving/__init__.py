"""Results of serving benchmarks: reading, checking and comparing them."""

from traceanalyzer.serving.comparison import compare
from traceanalyzer.serving.read import ReadResults, read
from traceanalyzer.serving.serving_result import ServingResult

__all__ = ["ReadResults", "ServingResult", "compare", "read"]
