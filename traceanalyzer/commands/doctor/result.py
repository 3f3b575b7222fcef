"""What `traceanalyzer doctor` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, told
from traceanalyzer.problems import TraceWarning


class DoctorProblem(TraceWarning, kw_only=True):
    """One thing that is wrong."""

    effect: Annotated[str, told("What it does to results.")]


class DoctorDocument(Document, tag="traceanalyzer/doctor/1"):
    """What is wrong with a file."""

    command: ClassVar[str] = "doctor"

    usable: Annotated[bool, told("Whether at least one trace of it can be analysed; exit status 1 if not.")]
    problems: Annotated[list[DoctorProblem], told("Everything that is wrong.")]
    repaired: Annotated[str | None, told("Where the valid copy was written.", null="no --repair")]
