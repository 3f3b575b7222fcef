"""What `traceanalyzer doctor` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, Part, told


class DoctorProblem(Part):
    """One thing that is wrong."""

    code: Annotated[str, told("Stable identifier; see warnings.md.")]
    message: Annotated[str, told("One sentence for a person.")]
    byte_offset: Annotated[int | None, told("Place in the decompressed file.", null="unknown", unit="bytes")]
    line: Annotated[int | None, told("Line there, from 1.", null="unknown")]
    count: Annotated[int | None, told("Events concerned.", null="not counted")]
    effect: Annotated[str, told("What it does to results.")]
    source: Annotated[str | None, told("The file or member concerned.", null="the whole input")]


class DoctorDocument(Document, tag="traceanalyzer/doctor/1"):
    """What is wrong with a file."""

    command: ClassVar[str] = "doctor"

    usable: Annotated[bool, told("Whether at least one trace of it can be analysed; exit status 1 if not.")]
    problems: Annotated[list[DoctorProblem], told("Everything that is wrong.")]
    repaired: Annotated[str | None, told("Where the valid copy was written.", null="no --repair")]
