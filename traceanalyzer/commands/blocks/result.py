"""What `traceanalyzer blocks` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, Part, csv_columns, told
from traceanalyzer.problems import TraceWarning
from traceanalyzer.show.step_pass import StepPass
from traceanalyzer.words import ROLES, Method, Phase, PhaseSource

Variant = Annotated[str, told("Letter that blocks with the same content share.")]
Kind = Annotated[
    str | None, told("What sets the variant apart: sliding, full, dense, moe, image tower, ...", null="unknown")
]
Events = Annotated[int, told("Kernels, copies and memsets.")]
Kernels = Annotated[int, told("Kernels.")]
KernelSum = Annotated[float, told("Sum of the kernels' durations.")]
Busy = Annotated[float, told("Length of the union of the kernels' intervals.")]
Start = Annotated[float, told("First event of the block, from the first event of the trace.")]
FirstKernel = Annotated[str | None, told("Name of its first kernel.", null="it has none")]
BlockNumber = Annotated[int, told("Number of the block, from 0.")]
StepNumber = Annotated[int, told("Number of the step, as in ingest.")]
StepPhase = Annotated[Phase, told("What the step does.")]
Complete = Annotated[bool, told("False where the recording cuts the step off.")]


class SectionSums(Part):
    """Events of a step before its first or after its last block."""

    events: Events
    kernels: Kernels
    kernel_sum_us: KernelSum


class BlockEntry(Part):
    """A transformer block."""

    index: BlockNumber
    variant: Variant
    kind: Kind
    events: Events
    kernels: Kernels
    kernel_sum_us: KernelSum
    busy_us: Busy
    start_us: Start
    first_kernel: FirstKernel
    roles: Annotated[dict[str, float], told("Kernel time by role; a role that does not occur is absent.", unit="µs")]


class BlockRow(Part):
    """A block with its place."""

    csv_title: ClassVar[str] = "blocks --csv"

    rank: Annotated[int | None, told("Rank in the job.", null="unknown")]
    device: Annotated[int | None, told("Number of the GPU.", null="a CPU-only trace")]
    step: StepNumber
    phase: StepPhase
    complete: Complete
    block: BlockNumber
    variant: Variant
    kind: Kind
    events: Events
    kernels: Kernels
    kernel_sum_us: KernelSum
    busy_us: Busy
    start_us: Start
    first_kernel: FirstKernel


BLOCK_COLUMNS = (*csv_columns(BlockRow), *(f"{role}_us" for role in ROLES))
"""Columns of ``blocks --csv``: those declared, then the time of each role."""


class StepBlocks(Part):
    """A step and its blocks."""

    index: StepNumber
    label: Annotated[str | None, told("Text of its marker.", null="no marker")]
    phase: StepPhase
    phase_source: Annotated[PhaseSource | None, told("Whether its marker says the phase.", null="the phase is unknown")]
    phase_confidence: Annotated[
        float | None,
        told("Estimated probability that an inferred phase is right.", null="it was not inferred", basis="modelled"),
    ]
    complete: Complete
    method: Annotated[
        Method | None,
        told("How blocks were found: by nn.Module events, or by the pattern of kernel names.", null="no blocks"),
    ]
    confidence: Annotated[
        float | None, told("Estimated probability that the blocks are right.", null="no blocks", basis="modelled")
    ]
    prologue: Annotated[SectionSums, told("Events before the first block.")]
    epilogue: Annotated[SectionSums, told("Events after the last block.")]
    period_blocks: Annotated[int | None, told("Blocks after which the variants repeat.", null="no blocks")]
    passes: Annotated[list[StepPass], told("Passes through the layers of a model, in order.")]
    blocks: Annotated[list[BlockEntry], told("The blocks in order, those of every pass.")]


class BlockOutlier(Part):
    """A block that is slower or faster than its kind."""

    phase: Annotated[Phase, told("Phase of the steps.")]
    blocks: Annotated[int, told("Blocks per step.")]
    steps: Annotated[int, told("Similar steps, over which the times are medians.")]
    block: Annotated[int, told("Number of the block.")]
    kind: Annotated[str, told("Kind, or variant where the kind has no name.")]
    time_us: Annotated[float, told("Kernel time of the block.")]
    usual_us: Annotated[float, told("Median of its kind.")]
    change: Annotated[float, told("Difference over the usual time.", unit="share, 1 is all")]
    kernel: Annotated[str, told("Kernel that makes most of the difference.")]
    kernel_change_us: Annotated[float, told("Its part of the difference.")]


class BlockTimeline(Part):
    """The steps of a GPU."""

    rank: Annotated[int | None, told("Rank in the job.", null="unknown")]
    device: Annotated[
        int | None, told("Number of the GPU.", null="a CPU-only trace, where compute ops stand in for kernels")
    ]
    steps: Annotated[list[StepBlocks], told("The steps in order of time.")]
    outliers: Annotated[
        list[BlockOutlier],
        told("Blocks slower or faster than their kind: medians over complete steps of a phase."),
    ]


class BlocksDocument(Document, tag="traceanalyzer/blocks/1"):
    """The transformer blocks of every step."""

    command: ClassVar[str] = "blocks"

    warnings: Annotated[list[TraceWarning], told("Reservations about the figures; also printed on stderr.")]
    timelines: Annotated[list[BlockTimeline], told("One per rank and GPU.")]
