"""What `traceanalyzer tune run` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.commands.tune.measure.result import Measured, MeasuredProblem, MeasuredTile
from traceanalyzer.declare import Document, told


class TuneRunProblem(MeasuredProblem):
    """A product at one number of rows, and its candidates."""

    finished: Annotated[bool, told("Whether everything was measured.")]
    cut_short: Annotated[str | None, told("Why not everything was measured.", null="it was")]
    best: Annotated[
        dict[str, int | float | str | bool | None] | None,
        told("The best candidate's meta-parameters.", null="none could be measured"),
    ]
    results: Annotated[list[MeasuredTile], told("Every candidate, the best first.")]


class TuneRunDocument(Measured, Document, tag="traceanalyzer/tune-run/1"):
    """Candidates measured on a GPU, the best of each problem first."""

    command: ClassVar[str] = "tune run"

    sweep: Annotated[str | None, told("Sweep file that holds every sample.", null="no --output")]
    problems: Annotated[list[TuneRunProblem], told("By m and routing.")]
