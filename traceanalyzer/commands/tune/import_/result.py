"""What `traceanalyzer tune import` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.commands.tune.tile_config import ConfigValues, ShapeValues
from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class ImportedPoint(Part):
    """A configuration, measured on a problem."""

    kernel: Annotated[str | None, told("Name of the kernel.", null="not in the file")]
    m: Annotated[int | None, told("Rows.", null="unknown")]
    concurrency: Annotated[int | None, told("Requests (tokens) in the batch.", null="unknown")]
    shape: ShapeValues
    config: ConfigValues
    samples_ms: Annotated[list[float], told("Every sample.")]
    median_ms: Annotated[float | None, told("Their median.", null="no samples")]
    reason: Annotated[str | None, told("Why it failed.", null="it did not, or was not timed")]
    backend: Annotated[str | None, told("Whose kernel ran.", null="unknown")]
    routing: Annotated[str | None, told("How rows are spread over experts.", null="does not apply, or unknown")]
    device: Annotated[dict[str, str | None], told("name and target of the GPU, as far as known.")]
    versions: Annotated[dict[str, str], told("Versions of the software that decides the result.")]
    measured: Annotated[bool, told("False when nothing was timed on a GPU (interpreter).")]


class TunePointsDocument(Document, tag="traceanalyzer/tune-points/1"):
    """Measured tiles, whatever program wrote the file."""

    command: ClassVar[str] = "tune import"

    points: Annotated[list[ImportedPoint], told("One per configuration and problem, in the file's order.")]
    warnings: Annotated[list[TraceWarning], told("What was skipped, counted.")]
