"""What `traceanalyzer tune screen` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.commands.tune.measure.result import Tile, TunedProblem
from traceanalyzer.declare import Document, Part, told

NO_CODE = "it does not compile, or not in time"
NO_RANK = "it has no rank"


class UntriedValue(Part):
    """A value of an axis that no candidate has."""

    value: Annotated[str, told("Parameter and value, such as group_m=8.")]
    reason: Annotated[str, told("Why not.")]


class TuneScreenCandidate(Tile):
    """A screened candidate."""

    rank: Annotated[int | None, told("1 is the most promising.", null="it cannot run, or was not compiled in time")] = (
        None
    )
    fits: Annotated[bool | None, told("Whether it can run.", null="not compiled in time")] = None
    registers: Annotated[int | None, told("Registers per thread.", null=NO_CODE)] = None
    spills: Annotated[int | None, told("Registers spilled.", null=NO_CODE)] = None
    shared_bytes: Annotated[int | None, told("Shared memory per thread block.", null=NO_CODE)] = None
    work_ratio: Annotated[
        float | None,
        told("Vector work over the least of all candidates.", null=NO_RANK, unit="ratio", basis="modelled"),
    ] = None
    relative_cost: Annotated[
        float | None, told("What the rank rests on; smaller is better.", null=NO_RANK, basis="modelled")
    ] = None
    bytes_in_flight: Annotated[
        float | None,
        told("Bytes that the resident programs wait for at once.", null=NO_RANK, unit="bytes", basis="modelled"),
    ] = None
    waves: Annotated[
        float | None, told("Rounds the GPU needs to run all programs.", null=NO_RANK, basis="modelled")
    ] = None
    reason: Annotated[str | None, told("Why it has no rank.", null="it has one")] = None


class TuneScreenDocument(Document, tag="traceanalyzer/tune-screen/1"):
    """Candidates in the order in which to measure them: compiled, not run."""

    command: ClassVar[str] = "tune screen"

    target_arch: Annotated[str, told("Architecture compiled for.")]
    gpu: Annotated[str | None, told("GPU whose figures count.", null="only the architecture is known")]
    kernel: Annotated[str, told("Name of the kernel.")]
    problem: Annotated[TunedProblem, told("The product.")]
    not_compiled: Annotated[int, told("Candidates left out: less promising by the tile alone.")]
    not_tried: Annotated[list[UntriedValue], told("Values named with --axis that no candidate has.")]
    candidates: Annotated[
        list[TuneScreenCandidate],
        told("The ranked first, then those that were not compiled in time, then those that cannot run."),
    ]
