"""What `traceanalyzer ranks` answers, field by field, and the columns of the frames in a ``RankComparison``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.findings import Finding
from traceanalyzer.problems import TraceWarning
from traceanalyzer.show.source_file import SourceFile

INT32, UINT32, FLOAT = InFrame("Int32"), InFrame("UInt32"), InFrame("Float64")
CATEGORY = InFrame("Categorical")

Rank = Annotated[int, told("Rank in the job.", frame=INT32)]
Group = Annotated[str, told("Ranks of the group as JSON text.", frame=CATEGORY)]
KINDS = "all_reduce, all_gather, reduce_scatter, all_to_all, dispatch, combine, send_recv, broadcast, ..."
Kind = Annotated[str, told(KINDS, frame=CATEGORY)]
Ranks = Annotated[list[int], told("Ranks of the group.")]
DataRank = Annotated[int | None, told("Data-parallel rank.", null="unknown", frame=None)]
StageRank = Annotated[int | None, told("Pipeline-parallel rank.", null="unknown", frame=None)]
TensorRank = Annotated[int | None, told("Tensor-parallel rank.", null="unknown", frame=None)]

Span = Annotated[float, told("Time from the first to the last event.")]
Compute = Annotated[float, told("Time in which some kernel other than communication runs.")]
Comm = Annotated[float, told("Time in which some communication kernel runs.")]
ExposedComm = Annotated[float, told("Part of comm in which no other kernel runs.")]
ExposedCopy = Annotated[float, told("Time in which only copies or memsets run.")]
Idle = Annotated[float, told("Time in which nothing runs.")]


class LayoutSizes(Part):
    """Sizes of the parallel layout."""

    tp: Annotated[int | None, told("Tensor-parallel.", null="unknown")]
    pp: Annotated[int | None, told("Pipeline-parallel.", null="unknown")]
    dp: Annotated[int | None, told("Data-parallel.", null="unknown")]
    ep: Annotated[int | None, told("Expert-parallel.", null="unknown")]


class RankPlace(Part):
    """Where a rank stands in the layout, and the trace it was read from."""

    rank: Rank
    dp: DataRank
    pp: StageRank
    tp: TensorRank
    ep: Annotated[int | None, told("Expert-parallel rank.", null="unknown")]
    rank_source: Annotated[str | None, told("How the rank is known.", null="unknown")]
    source: Annotated[str, told("Its file.")]
    duplicates: Annotated[int, told("Further traces of the same rank, left out.")]


class ClockAlignment(Part):
    """How the ranks' clocks were put on one."""

    method: Annotated[str, told("baseTimeNanoseconds, matched collectives, file clock, or single rank.")]
    residual_us: Annotated[
        float | None,
        told("Median over calls: first to last end on the common clock.", null="no paired call", basis="derived"),
    ]
    calls: Annotated[int, told("Calls that the residual rests on.")]
    offsets_us: Annotated[dict[str, float], told("By rank, what was added to its times.", basis="derived")]
    unaligned: Annotated[list[int], told("Ranks that no collective ties to the others.")]


class CollectiveTotals(Part):
    """Calls of one kind of collective in one group of ranks."""

    frame_title: ClassVar[str] = "RankComparison.collectives"

    kind: Kind
    group: Group
    calls: Annotated[int, told("Paired calls.")]
    transfer_us: Annotated[float, told("Shortest time over the ranks of each call, summed.")]
    late_wait_us: Annotated[float, told("Longest wait of each call, summed: saved if all ranks arrived together.")]
    known_bytes: Annotated[int, told("Message sizes of the calls that record one.")]
    known_us: Annotated[float, told("Transfer of those calls.")]


class CollectiveWaits(Part):
    """What a rank waited, and made others wait, in one kind of collective of one group."""

    frame_title: ClassVar[str] = "RankComparison.waits"

    kind: Kind
    group: Group
    rank: Rank
    wait_us: Annotated[float, told("Its time in these calls beyond their transfer.")]
    late_calls: Annotated[int, told("Calls at which it was the last to arrive.")]
    caused_us: Annotated[float, told("Longest wait of those calls, summed.")]


class CollectiveCalls(Part):
    """One kind of collective in one group of ranks."""

    kind: Kind
    ranks: Ranks
    basis: Annotated[str | None, told("How it is known which ranks share it.", null="unknown")]
    calls: Annotated[int, told("Paired calls.")]
    transfer_us: Annotated[float, told("Shortest time over the ranks of each call, summed.")]
    wait_us: Annotated[dict[str, float], told("By rank, its time beyond the transfer.")]
    late_rank: Annotated[dict[str, int], told("By rank, calls at which it was the last to arrive.")]
    caused_wait_us: Annotated[dict[str, float], told("By late rank, the longest wait of those calls, summed.")]
    bytes: Annotated[int | None, told("Message sizes of the calls that record one.", null="none does")]
    bus_gbps: Annotated[float | None, told("Bus bandwidth of those calls.", null="unknown", basis="derived")]
    link_gbps: Annotated[float | None, told("Peak of the link in one direction.", null="unknown")]
    link_share: Annotated[float | None, told("bus_gbps over link_gbps.", null="unknown")]


class LateKernel(Part):
    """What the kernel that made a rank late took, in the calls for which it was the largest cause."""

    role: Annotated[str | None, told("Role of the kernel.", null="unknown, or idle")]
    calls: Annotated[int, told("Calls for which it was the largest cause.")]
    extra_us: Annotated[float, told("Time beyond the others' median, in those calls.", heading="longer by")]
    own_us: Annotated[float | None, told("Its time on the late rank, in those calls.", null="idle")]
    others_us: Annotated[
        float | None, told("Median of its time on the others, summed over those calls.", null="idle", frame=FLOAT)
    ]
    wait_us: Annotated[float, told("Longest wait of those calls, summed.", heading="others waited")]


class CauseRow(LateKernel):
    """Why a rank arrived late."""

    frame_title: ClassVar[str] = "RankComparison.causes"

    group: Annotated[str, told("Ranks of the group as JSON text.")]
    rank: Annotated[int, told("The late rank.", frame=INT32)]
    name: Annotated[str | None, told("Kernel that took longer than on the others.", null="the rank was idle")]


class LateCause(LateKernel):
    """Why a rank arrived late."""

    ranks: Ranks
    late_rank: Annotated[int, told("The late rank.")]
    kernel: Annotated[str | None, told("Kernel that took longer than on the others.", null="the rank was idle")]


class LeftOutCalls(Part):
    """Calls left out of the comparison."""

    kind: Annotated[str, told("Kind of collective.")]
    rank: Annotated[int, told("The rank that recorded the calls.", frame=INT32)]
    calls: Annotated[int, told("Calls without a partner on the other ranks.", frame=UINT32)]


class UnpairedRow(LeftOutCalls):
    """Calls left out of the comparison."""

    frame_title: ClassVar[str] = "RankComparison.unpaired"

    group: Annotated[str, told("Ranks of the group as JSON text.")]


class UnpairedCalls(LeftOutCalls):
    """Calls left out of the comparison."""

    ranks: Ranks


class RankTime(Part):
    """How a rank spends its time over the whole recording."""

    frame_title: ClassVar[str] = "RankComparison.per_rank"
    csv_title: ClassVar[str] = "ranks --csv"

    rank: Rank
    dp: DataRank
    pp: StageRank
    tp: TensorRank
    stage: Annotated[int | None, told("Pipeline stage.", null="unknown", frame=INT32)]
    layers: Annotated[int | None, told("Transformer blocks per step.", null="unknown")]
    span_us: Span
    compute_us: Compute
    comm_us: Comm
    exposed_comm_us: ExposedComm
    exposed_copy_us: ExposedCopy
    idle_us: Idle
    wait_us: Annotated[
        float | None, told("Waiting in paired calls.", null="no paired call", heading="waiting", frame=None)
    ]
    steps: Annotated[int, told("Complete steps, dummies left out.", frame=None)]


class RankExposure(Part):
    """How a rank spends its time in complete steps; dummies are left out."""

    rank: Rank
    span_us: Span
    compute_us: Compute
    comm_us: Comm
    exposed_comm_us: ExposedComm
    exposed_copy_us: ExposedCopy
    idle_us: Idle


class RankStep(RankExposure):
    """How a rank spends a complete step."""

    frame_title: ClassVar[str] = "RankComparison.by_step"

    step: Annotated[int, told("Step of that rank.", frame=INT32)]


class RankSteps(RankExposure):
    """Sums over the rows of ``by_step`` of a rank."""

    frame_title: ClassVar[str] = "RankComparison.per_step"

    steps: Annotated[int, told("Rows of by_step that are summed.", frame=UINT32)]
    wait_us: Annotated[float, told("Waiting in paired calls of those steps.")]


class RankDummies(Part):
    """A rank that ran steps without requests of its own."""

    frame_title: ClassVar[str] = "RankComparison.dummies"

    rank: Rank
    steps: Annotated[int, told("Complete steps, dummies included.")]
    dummy_steps: Annotated[int, told("Dummies among them.")]
    dummy_us: Annotated[float, told("Span of the dummies.")]


class PairedCall(Part):
    """A rank's part in a call that was found on every rank of its group that is at hand."""

    group: Group
    kind: Kind
    call: Annotated[int, told("Number of the call, the same on all its ranks.", frame=UINT32)]
    rank: Rank
    start_us: Annotated[float, told("Start on the clock common to all ranks.")]
    dur_us: Annotated[float, told("Time of the rank's kernel.")]
    counts: Annotated[bool, told("Whether every rank is in a complete step that is not a dummy.")]
    bytes: Annotated[int | None, told("Message size.", null="not recorded")]
    event: Annotated[int, told("Row of the event among those of all ranks.", frame=UINT32)]


class RankCall(PairedCall):
    """A rank's part in a paired call, split into transfer and waiting."""

    frame_title: ClassVar[str] = "RankComparison.calls"

    transfer_us: Annotated[float, told("Shortest time over the ranks of the call.")]
    late: Annotated[int | None, told("Rank that arrived last.", null="all arrived together", frame=INT32)]
    wait_us: Annotated[float, told("Time beyond the transfer.")]
    step: Annotated[int | None, told("Step of the rank.", null="outside of steps", frame=INT32)]


class ExpertLoad(Part):
    """Time of expert kernels."""

    per_rank_us: Annotated[dict[str, float], told("By rank, in complete steps.")]
    max_over_mean: Annotated[
        float | None, told("Busiest rank over the mean, both per step.", null="only one rank", unit="ratio")
    ]
    coefficient_of_variation: Annotated[
        float | None, told("Standard deviation over mean.", null="only one rank", unit="ratio")
    ]
    combine_wait_us: Annotated[
        dict[str, float] | None, told("By rank, waiting in the exchange after the experts.", null="there is none")
    ]
    expert_parallel: Annotated[bool, told("Whether tokens go to other ranks' experts.")]


class PipelineStage(Part):
    """Means per cycle of a pipeline stage."""

    frame_title: ClassVar[str] = "Pipeline.stages"

    stage: Annotated[int, told("Number of the stage.", frame=INT32)]
    ranks: Annotated[list[int], told("Its ranks.", frame=InFrame("List(Int32)"))]
    layers: Annotated[int | None, told("Transformer blocks.", null="its ranks disagree, or none is at hand")]
    cycle_us: Annotated[float, told("Start of a step to the start of the next.", frame=FLOAT)]
    work_us: Annotated[float, told("Kernels other than sends and receives.", frame=FLOAT)]
    transfer_us: Annotated[float, told("Sends and receives without waiting.", frame=FLOAT)]
    wait_us: Annotated[float, told("Waiting in sends and receives.", frame=FLOAT)]
    idle_us: Annotated[float, told("Rest of the cycle.", frame=FLOAT)]
    bubble_share: Annotated[float, told("Share of the cycle without work or transfer.")]
    steps: Annotated[int, told("Cycles that the means rest on.")]


class PipelineTimes(Part):
    """How the stages of a pipeline work together."""

    bubble_share: Annotated[
        float | None, told("Share of all stages' time without work or transfer.", null="no complete step")
    ]
    layers_per_stage: Annotated[
        list[int | None], told("Blocks of each stage; null where its ranks disagree or none is at hand.")
    ]
    layers_total: Annotated[int | None, told("Their sum.", null="one is unknown")]
    cycles: Annotated[int, told("Cycles that this rests on.")]
    stages: Annotated[list[PipelineStage], told("Means per cycle.")]


class RankFinding(Finding, kw_only=False):
    """Something to act on, with its share of the step."""

    worth_share: Annotated[float | None, told("worth_us over the step's time.", null="unknown")] = None


class HtaTemporal(Part):
    """Time of a rank."""

    rank: Rank
    idle_us: Annotated[float | None, told("Idle.", null="not a number")]
    compute_us: Annotated[float | None, told("Computing.", null="not a number")]
    non_compute_us: Annotated[float | None, told("Other kernels.", null="not a number")]
    kernel_time_us: Annotated[float | None, told("Whole time.", null="not a number")]


class HtaOverlap(Part):
    """Communication of a rank that computation covers."""

    rank: Rank
    overlap_percent: Annotated[float | None, told("Covered part.", null="not a number", heading="overlap %")]


class HtaIdle(Part):
    """Idle time of a stream by its cause."""

    rank: Rank
    stream: Annotated[int, told("Stream.")]
    category: Annotated[str, told("host_wait, kernel_wait or other.")]
    idle_us: Annotated[float | None, told("Idle time.", null="not a number")]


class HtaQueue(Part):
    """Length of a stream's launch queue."""

    rank: Rank
    stream: Annotated[int, told("Stream.")]
    mean: Annotated[float | None, told("Mean length.", null="not a number", heading="mean queue")]
    max: Annotated[float | None, told("Greatest length.", null="not a number", heading="longest queue")]


class HtaCriticalPath(Part):
    """What limits the critical path of an eager step."""

    rank: Rank
    bound_by: Annotated[str, told("What limits it.", heading="critical path limited by")]
    share: Annotated[float | None, told("Of the path.", null="the path has no length")]


class SecondOpinion(Part):
    """What HolisticTraceAnalysis makes of the same events."""

    temporal: Annotated[list[HtaTemporal], told("Time by rank.")]
    overlap: Annotated[list[HtaOverlap], told("Communication that computation covers.")]
    idle: Annotated[list[HtaIdle], told("Idle time by stream.")]
    queue: Annotated[list[HtaQueue], told("Length of the launch queue.")]
    critical_path: Annotated[list[HtaCriticalPath], told("Critical path; empty for steps that graphs launch.")]
    notes: Annotated[list[str], told("What not to believe, and analyses that failed.")]


class RanksDocument(Document, tag="traceanalyzer/ranks/1"):
    """The ranks of a job side by side. Times over the whole recording unless said."""

    command: ClassVar[str] = "ranks"

    ranks: Annotated[list[int], told("Ranks at hand.")]
    missing: Annotated[list[int], told("Ranks of the job without a trace.")]
    world_size: Annotated[int, told("Ranks of the job, missing ones included.")]
    layout: Annotated[LayoutSizes, told("Sizes of the parallel layout.")]
    layout_source: Annotated[str | None, told("How the layout is known.", null="unknown")]
    table: Annotated[list[RankPlace], told("Where each rank stands.")]
    skipped: Annotated[list[SourceFile], told("Files that hold no trace.")]
    clocks: Annotated[ClockAlignment, told("How the ranks' clocks were put on one.")]
    collectives: Annotated[list[CollectiveCalls], told("By kind and group, the most waiting first.")]
    causes: Annotated[list[LateCause], told("Why ranks arrived late, largest first.")]
    unpaired: Annotated[list[UnpairedCalls], told("Calls without a partner on the other ranks.")]
    per_rank: Annotated[
        list[RankTime],
        told("How each rank spends its time; compute, exposed communication, exposed copies and idle sum to the span."),
    ]
    experts: Annotated[ExpertLoad | None, told("Time of expert kernels.", null="the job has none")]
    pipeline: Annotated[PipelineTimes | None, told("Pipeline stages.", null="the job has one stage")]
    dummy_steps: Annotated[list[RankDummies], told("Ranks that ran steps without requests of their own.")]
    findings: Annotated[list[RankFinding], told("What to act on, what limits the comparison first.")]
    hta: Annotated[SecondOpinion | None, told("What HolisticTraceAnalysis makes of the same events.", null="no --hta")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
