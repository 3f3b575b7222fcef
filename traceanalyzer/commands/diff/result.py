"""What `traceanalyzer diff` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.problems import TraceWarning
from traceanalyzer.words import Phase

MEAN = InFrame("Float64")
COUNT = InFrame("UInt32")


class DiffRow(Part):
    """The kernels at one position, on both sides."""

    frame_title: ClassVar[str] = "Diff.rows"
    csv_title: ClassVar[str] = "diff --csv"

    section: Annotated[str | None, told("prologue, block or epilogue.", null="outside of a section")]
    block_kind: Annotated[str | None, told("Kind of the blocks.", null="outside of blocks, or the kind has no name")]
    role: Annotated[str | None, told("Role of the kernel.", null="unknown")]
    position: Annotated[int, told("Place among the kernels of that role, from 0.", csv=False)]
    blocks: Annotated[int, told("Blocks of a step that have the position.", csv=False, frame=COUNT)]
    name_before: Annotated[str | None, told("Kernel in BEFORE.", null="only AFTER has the position")]
    name_after: Annotated[str | None, told("Kernel in AFTER.", null="only BEFORE has the position")]
    change: Annotated[
        str | None,
        told(
            "How the kernel changed: added, removed, another tile, library or kernel.",
            null="the kernel is the same",
            frame=None,
        ),
    ]
    before_us: Annotated[float, told("Time per step; 0 where BEFORE lacks the position.", frame=MEAN)]
    after_us: Annotated[float, told("Time per step; 0 where AFTER lacks the position.", frame=MEAN)]
    delta_us: Annotated[float, told("After less before.", frame=MEAN)]


class DiffSteps(Part):
    """Steps of one phase and batch size that were compared."""

    frame_title: ClassVar[str] = "Diff.matched"

    phase: Annotated[Phase, told("Their phase.")]
    requests: Annotated[int | None, told("Sequences per step.", null="unknown, or batches differ")]
    steps_before: Annotated[int, told("Steps of BEFORE.", frame=COUNT)]
    steps_after: Annotated[int, told("Steps of AFTER.", frame=COUNT)]


class DiffDocument(Document, tag="traceanalyzer/diff/1"):
    """Two traces of one model, role by role. A step's time is the sum of its device events."""

    command: ClassVar[str] = "diff"

    before_step_us: Annotated[float, told("Mean time of a step of BEFORE.")]
    after_step_us: Annotated[float, told("Mean time of a step of AFTER.")]
    before_span_us: Annotated[float, told("Mean time from first to last event of a step of BEFORE.")]
    after_span_us: Annotated[float, told("Mean time from first to last event of a step of AFTER.")]
    rows: Annotated[
        list[DiffRow],
        told("By size of the change; the deltas and unattributed_us sum to the change of the step."),
    ]
    unattributed_us: Annotated[float, told("Change of the step that is in no row.")]
    steps: Annotated[list[DiffSteps], told("The steps compared.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
