"""What `traceanalyzer tune run` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.commands.tune.measure.result import MeasuredTile, TunedProblem
from traceanalyzer.declare import Document, Part, told


class TuneRunProblem(Part):
    """A product at one number of rows, and its candidates."""

    problem: Annotated[TunedProblem, told("The product measured.")]
    concurrency: Annotated[int, told("Tokens in the batch.")]
    routing: Annotated[str | None, told("How rows are spread over experts.", null="a dense product")]
    finished: Annotated[bool, told("Whether everything was measured.")]
    cut_short: Annotated[str | None, told("Why not everything was measured.", null="it was")]
    best: Annotated[
        dict[str, int | float | str | bool | None] | None,
        told("The best candidate's meta-parameters.", null="none could be measured"),
    ]
    results: Annotated[list[MeasuredTile], told("Every candidate, the best first.")]


class TuneRunDocument(Document, tag="traceanalyzer/tune-run/1"):
    """Candidates measured on a GPU, the best of each problem first."""

    command: ClassVar[str] = "tune run"

    kernel: Annotated[str, told("Name of the kernel.")]
    backend: Annotated[str, told("Whose kernel: builtin, triton_kernels or fused_moe.")]
    measured: Annotated[bool, told("False where times mean nothing (interpreter).")]
    device: Annotated[dict[str, str | None], told("name and target of the GPU, as far as known.")]
    versions: Annotated[dict[str, str], told("Versions of the software that decides the result.")]
    sweep: Annotated[str | None, told("Sweep file that holds every sample.", null="no --output")]
    problems: Annotated[list[TuneRunProblem], told("By m and routing.")]
