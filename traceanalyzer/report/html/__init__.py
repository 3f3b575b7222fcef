"""The report: one self-contained HTML page for people to look at and pass on.

analyses -> ``gather`` (frozen dataclasses) -> ``trace_sections``, ``jobs``, ``about``, ``verdict`` (sections made of
``parts``: tables, figures, strips, sentences) -> ``page`` (HTML, by the templates)
"""

from traceanalyzer.report.html.gather import PageData, Sides, TraceView, gather_diff, gather_serving, gather_trace
from traceanalyzer.report.html.page import render

__all__ = ["PageData", "Sides", "TraceView", "gather_diff", "gather_serving", "gather_trace", "render"]
