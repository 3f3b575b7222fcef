"""The roofline where it can be made; what several kinds of output need beside other tables."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.roofline import Request, Roofline, RooflineError, roofline
from traceanalyzer.trace import Trace


def roofline_or_reason(trace: Trace, request: Request) -> tuple[Roofline | None, str | None]:
    """Return the roofline, or None and why there is none.

    Raises:
        RooflineError: the user stated model, GPU, workload or layout, and that cannot be held against the trace.
    """
    try:
        return roofline(trace, request), None
    except RooflineError as error:
        # Which steps are looked at does not contradict the trace.
        if replace(request, phase=None, every_phase=False) != Request():
            raise
        return None, str(error)
