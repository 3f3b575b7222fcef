"""What `traceanalyzer blocks` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class BlocksPrologue(Part):
    """Events before the first block."""

    events: Annotated[int, told("Kernels, copies and memsets.")]
    kernels: Annotated[int, told("Kernels.")]
    kernel_sum_us: Annotated[float, told("Sum of the kernels' durations.")]


class BlocksEpilogue(Part):
    """Events after the last block."""

    events: Annotated[int, told("Kernels, copies and memsets.")]
    kernels: Annotated[int, told("Kernels.")]
    kernel_sum_us: Annotated[float, told("Sum of the kernels' durations.")]


class BlocksBlock(Part):
    """TODO"""

    index: Annotated[int, told("Number of the block, from 0.")]
    variant: Annotated[str, told("Letter that blocks of the same content share.")]
    kind: Annotated[
        str | None, told("What sets the variant apart: sliding, full, dense, moe, mamba, ...", null="not known")
    ]
    events: Annotated[int, told("Kernels, copies and memsets.")]
    kernels: Annotated[int, told("Kernels.")]
    kernel_sum_us: Annotated[float, told("Sum of the kernels' durations.")]
    busy_us: Annotated[float, told("Length of the union of the kernels' intervals.")]
    start_us: Annotated[float, told("First event of the block, from the first event of the trace.")]
    first_kernel: Annotated[str | None, told("Name of its first kernel.", null="it has none")]
    roles: Annotated[dict[str, float], told("Kernel time by role; a role that does not occur is absent.", unit="µs")]


class BlocksStep(Part):
    """TODO"""

    index: Annotated[int, told("Number of the step, as in ingest.")]
    label: Annotated[str | None, told("Text of its marker.", null="no marker")]
    phase: Annotated[Literal["decode", "prefill", "mixed", "dummy", "unknown"], told("What the step does.")]
    complete: Annotated[bool, told("False where the recording cuts it off.")]
    method: Annotated[
        Literal["modules", "pattern"] | None,
        told(
            "How blocks were found: from nn.Module events, or from the repeating pattern of kernels.",
            null="no blocks were found",
        ),
    ]
    confidence: Annotated[float | None, told("That the blocks are right, 0 to 1.", null="no blocks were found")]
    prologue: Annotated[BlocksPrologue, told("Events before the first block.")]
    epilogue: Annotated[BlocksEpilogue, told("Events after the last block.")]
    period_blocks: Annotated[int | None, told("Blocks after which the variants repeat.", null="no blocks")]
    blocks: Annotated[list[BlocksBlock], told("The blocks in order.")]


class BlocksOutlier(Part):
    """TODO"""

    phase: Annotated[Literal["decode", "prefill", "mixed", "dummy", "unknown"], told("Phase of the steps.")]
    blocks: Annotated[int, told("Blocks of the steps.")]
    steps: Annotated[int, told("Steps that are alike, of which the times are medians.")]
    block: Annotated[int, told("Number of the block.")]
    kind: Annotated[str, told("Kind, or variant where the kind has no name.")]
    time_us: Annotated[float, told("Kernel time of the block.")]
    usual_us: Annotated[float, told("Median of its kind.")]
    change: Annotated[float, told("Difference over the usual time.", unit="share, 1 is all")]
    kernel: Annotated[str, told("Kernel that makes most of the difference.")]
    kernel_change_us: Annotated[float, told("By how much.")]


class BlocksTimeline(Part):
    """TODO"""

    rank: Annotated[int | None, told("Rank in the job.", null="the trace does not tell")]
    device: Annotated[
        int | None, told("Number of the GPU.", null="a CPU-only trace, where leaf CPU ops stand in for kernels")
    ]
    steps: Annotated[list[BlocksStep], told("The steps in order of time.")]
    outliers: Annotated[
        list[BlocksOutlier],
        told("Blocks whose time is not that of their kind, medians over complete steps of a phase."),
    ]


class BlocksDocument(Document, tag="traceanalyzer/blocks/1"):
    """The transformer blocks of every step."""

    command: ClassVar[str] = "blocks"

    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
    timelines: Annotated[list[BlocksTimeline], told("One for each rank and GPU.")]
