"""What `traceanalyzer diff` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class DiffRow(Part):
    """TODO"""

    section: Annotated[str | None, told("prologue, block or epilogue.", null="outside of a section")]
    block_kind: Annotated[str | None, told("Kind of the blocks.", null="outside of blocks, or the kind has no name")]
    blocks: Annotated[int, told("Blocks of a step that have the position.")]
    role: Annotated[str | None, told("Role of the kernel.", null="not known")]
    name_before: Annotated[str | None, told("Kernel in BEFORE.", null="only AFTER has the position")]
    name_after: Annotated[str | None, told("Kernel in AFTER.", null="only BEFORE has the position")]
    change: Annotated[
        str | None,
        told("How the kernel changed: added, removed, another tile, library or kernel.", null="the kernel is the same"),
    ]
    before_us: Annotated[float, told("Time a step; 0 where the position is missing.")]
    after_us: Annotated[float, told("Time a step; 0 where the position is missing.")]
    delta_us: Annotated[float, told("After less before.")]


class DiffStep(Part):
    """TODO"""

    phase: Annotated[Literal["decode", "prefill", "mixed", "dummy", "unknown"], told("Their phase.")]
    requests: Annotated[int | None, told("Sequences a step.", null="not known, or batches differ")]
    steps_before: Annotated[int, told("Steps of BEFORE.")]
    steps_after: Annotated[int, told("Steps of AFTER.")]


class DiffDocument(Document, tag="traceanalyzer/diff/1"):
    """Two traces of one model, role by role. A step's time is the sum of its device events."""

    command: ClassVar[str] = "diff"

    before_step_us: Annotated[float, told("Mean time of a step of BEFORE.")]
    after_step_us: Annotated[float, told("Mean time of a step of AFTER.")]
    before_span_us: Annotated[float, told("Mean from first to last event of a step of BEFORE.")]
    after_span_us: Annotated[float, told("Mean from first to last event of a step of AFTER.")]
    rows: Annotated[
        list[DiffRow],
        told("A row a kernel position, the largest change first; the deltas and unattributed_us sum to the step's."),
    ]
    unattributed_us: Annotated[float, told("What the rows leave of the step's change.")]
    steps: Annotated[list[DiffStep], told("The steps compared.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
