"""The report: one self-contained HTML page for people to look at and pass on.

analyses -> ``gather`` (frozen dataclasses) -> ``sections`` (tables, figures, sentences) -> ``page`` (HTML)
"""

from traceanalyzer.report.html.gather import PageData, Sides, TraceView, gather_diff, gather_serving, gather_trace
from traceanalyzer.report.html.page import render

__all__ = ["PageData", "Sides", "TraceView", "gather_diff", "gather_serving", "gather_trace", "render"]
