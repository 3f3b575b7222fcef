"""A diagnosis as text."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.commands.doctor.result import DoctorDocument
from traceanalyzer.wording import place_of, plural, visible


def lines(path: str, diagnosis: DoctorDocument) -> Iterator[str]:
    """Yield the lines that describe what is wrong with a file."""
    state = "can be analysed" if diagnosis.usable else "cannot be analysed"
    count = plural(len(diagnosis.problems), "problem") if diagnosis.problems else "no problems"
    yield f"{visible(path)}: {state}, {count}"
    for problem in diagnosis.problems:
        where = f" ({place})" if (place := place_of(problem)) else ""
        member = f"{visible(problem.source)}: " if problem.source and problem.source != path else ""
        yield f"  {problem.code}{where}: {member}{visible(problem.message)}"
        yield f"      effect: {problem.effect}"
    if diagnosis.repaired is not None:
        yield f"valid copy: {visible(diagnosis.repaired)}"
