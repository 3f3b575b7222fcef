"""What `traceanalyzer ingest` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.findings import Finding
from traceanalyzer.problems import TraceWarning
from traceanalyzer.show.source_file import SourceFile
from traceanalyzer.show.step_pass import StepPass
from traceanalyzer.words import Phase, PhaseSource, WorkloadKind


class SummaryParallel(Part):
    """The rank's place in the parallel layout."""

    dp: Annotated[int | None, told("Data-parallel rank.", null="unknown")]
    pp: Annotated[int | None, told("Pipeline-parallel rank.", null="unknown")]
    tp: Annotated[int | None, told("Tensor-parallel rank.", null="unknown")]
    ep: Annotated[int | None, told("Expert-parallel rank.", null="unknown")]
    dcp: Annotated[int | None, told("Decode-context-parallel rank.", null="unknown")]


class SummaryKernelsWithoutStep(Part):
    """Kernels that belong to no step."""

    count: Annotated[int, told("How many.")]
    sum_us: Annotated[float, told("Sum of their durations.")]


class SummaryTopKernel(Part):
    """The kernels of one name."""

    frame_title: ClassVar[str] = "Timeline.top_kernels"

    name: Annotated[str, told("Of the kernel.")]
    count: Annotated[int, told("How often it ran.", frame=InFrame("UInt32"))]
    total_us: Annotated[float, told("Sum of its durations.")]
    share: Annotated[float, told("Of kernel_sum_us.")]


class SummaryStep(Part):
    """One pass of the model."""

    index: Annotated[int, told("Number of the step, from 0.")]
    label: Annotated[str | None, told("Text of its marker.", null="no marker")]
    phase: Annotated[Phase, told("What the step does.")]
    phase_source: Annotated[
        PhaseSource | None,
        told("Whether its marker says the phase, or its kernels and their launches do.", null="the phase is unknown"),
    ]
    phase_confidence: Annotated[
        float | None,
        told("Estimated probability that an inferred phase is right.", null="it was not inferred", basis="modelled"),
    ]
    complete: Annotated[bool, told("False where the recording cuts it off.")]
    requests: Annotated[int | None, told("Sequences.", null="unknown")]
    tokens: Annotated[int | None, told("New tokens.", null="unknown")]
    kernels: Annotated[int, told("Kernels of the step.")]
    kernel_sum_us: Annotated[float, told("Sum of their durations.")]
    busy_us: Annotated[float, told("Length of the union of their intervals.")]
    span_us: Annotated[float, told("First to last event of the step.")]
    idle_before_us: Annotated[float | None, told("Pause between the step before and this one.", null="the first step")]
    blocks: Annotated[int, told("Transformer blocks: each layer of the main model once, however many passes run.")]
    passes: Annotated[list[StepPass], told("Passes through the layers of a model, in order.", csv=False)]
    kv_tokens: Annotated[
        int | None, told("Tokens of all contexts, new ones included.", null="the marker does not tell")
    ]
    confidence: Annotated[float | None, told("That the blocks are right, 0 to 1.", null="no blocks were found")]


class SummaryTimeline(Part):
    """One GPU of one rank."""

    synthetic: Annotated[bool, told("Whether the file says that it was generated, not recorded.")]
    rank: Annotated[int | None, told("Rank in the job.", null="the trace does not tell")]
    device: Annotated[
        int | None, told("Number of the GPU.", null="a CPU-only trace, where compute ops stand in for kernels")
    ]
    device_name: Annotated[str | None, told("The GPU.", null="unknown")]
    device_name_source: Annotated[
        Literal["trace", "fingerprint", "option"] | None,
        told(
            "How it is known: named in the trace, recognised by its properties, or stated by the user.",
            null="unknown",
        ),
    ]
    parallel: Annotated[
        SummaryParallel | None, told("The rank's place in the parallel layout.", null="the trace does not tell")
    ]
    kernels: Annotated[int, told("Kernels; without copies and memsets.")]
    kernel_sum_us: Annotated[float, told("Sum of the kernels' durations.")]
    busy_us: Annotated[float, told("Length of the union of the kernels' intervals.")]
    span_us: Annotated[float, told("First start to last end of the kernels.")]
    memcpy_us: Annotated[float, told("Sum of the copies' durations.")]
    memset_us: Annotated[float, told("Sum of the memsets' durations.")]
    comm_sum_us: Annotated[float, told("Sum of the communication kernels' durations.")]
    comm_exposed_us: Annotated[float, told("Time in which communication runs and no other kernel does.")]
    graph_launches: Annotated[
        int, told("Launches that started two or more device events, or are graph launches by name.")
    ]
    kernels_without_step: Annotated[SummaryKernelsWithoutStep, told("Kernels that belong to no step.")]
    top_kernels: Annotated[list[SummaryTopKernel], told("Kernel names by total time, the first ten.")]
    step_source: Annotated[
        Literal["vllm", "sglang", "atom", "profiler_step", "python", "graph_launch", "inferred"] | None,
        told("How the steps were found.", null="no steps"),
    ]
    steps: Annotated[list[SummaryStep], told("The steps in order of time.")]


class SummaryDocument(Document, tag="traceanalyzer/summary/1"):
    """What the input holds: a timeline for each rank and GPU that ran kernels, with its steps."""

    command: ClassVar[str] = "ingest"

    status: Annotated[Literal["ok", "warning"], told("warning if there are warnings.")]
    sources: Annotated[list[SourceFile], told("Every file of the input.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
    engine: Annotated[
        Literal["vllm", "sglang", "atom", "transformers", "unknown"],
        told("The engine that wrote the traces; unknown where they disagree or none tells."),
    ]
    world_size: Annotated[int, told("Ranks of the job, at least those at hand.")]
    missing_ranks: Annotated[list[int], told("Ranks of the job without a trace.")]
    timelines: Annotated[list[SummaryTimeline], told("One for each rank and GPU that ran kernels.")]
    workload: Annotated[WorkloadKind, told("What was recorded; unknown where nothing tells.")]
    workload_basis: Annotated[list[str], told("What that rests on.")]
    findings: Annotated[
        list[Finding],
        told("What to know before any figure: that the GPU idles most of the time, what the workload allows to say."),
    ]
