"""Which work is limited by memory, arithmetic, latency or communication, and what could be saved.

facts of the trace -> model and workload -> ops -> join with the measured kernels -> bounds -> findings
"""

from traceanalyzer.roofline.analyse import Request, roofline
from traceanalyzer.roofline.roofline_result import Latency, Roofline, RooflineError, Row
from traceanalyzer.roofline.whatif import Assumption, WhatIf, parse_assumption, what_if

__all__ = [
    "Assumption",
    "Latency",
    "Request",
    "Roofline",
    "RooflineError",
    "Row",
    "WhatIf",
    "parse_assumption",
    "roofline",
    "what_if",
]
