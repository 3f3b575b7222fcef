"""What `traceanalyzer gpus` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, told
from traceanalyzer.hardware import Gpu


class GpuEntry(Gpu):
    """A GPU with what good kernels reach on it."""

    achievable_tflops: Annotated[dict[str, float], told("What good kernels reach, by data type.", basis="derived")]
    achievable_gbps: Annotated[
        float | None, told("Bandwidth that good kernels reach.", null="no peak is known", basis="derived")
    ]
    achievable_basis: Annotated[list[str], told("What the achievable figures rest on.")]


class GpusDocument(Document, tag="traceanalyzer/gpus/1"):
    """GPUs whose limits are known. Peaks are dense."""

    command: ClassVar[str] = "gpus"

    gpus: Annotated[list[GpuEntry], told("In the order of the table.")]
