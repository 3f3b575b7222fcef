"""What `traceanalyzer ranks` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class RanksLayout(Part):
    """Sizes of the parallel layout."""

    tp: Annotated[int | None, told("Tensor-parallel.", null="not known")]
    pp: Annotated[int | None, told("Pipeline-parallel.", null="not known")]
    dp: Annotated[int | None, told("Data-parallel.", null="not known")]
    ep: Annotated[int | None, told("Expert-parallel.", null="not known")]


class RanksTable(Part):
    """TODO"""

    rank: Annotated[int, told("Rank in the job.")]
    dp: Annotated[int | None, told("Data-parallel rank.", null="not known")]
    pp: Annotated[int | None, told("Pipeline-parallel rank.", null="not known")]
    tp: Annotated[int | None, told("Tensor-parallel rank.", null="not known")]
    ep: Annotated[int | None, told("Expert-parallel rank.", null="not known")]
    rank_source: Annotated[str | None, told("How the rank is known.", null="not known")]
    source: Annotated[str, told("Its file.")]
    duplicates: Annotated[int, told("Further traces of the same rank, left out.")]


class RanksSkipped(Part):
    """TODO"""

    path: Annotated[str, told("As given; archive!member for a member of an archive.")]
    bytes: Annotated[int, told("Size on disk, of the member as stored.")]
    format: Annotated[Literal["json", "store", "unknown"], told("What the file is.")]
    compression: Annotated[str | None, told("gzip, zip, tar, ...", null="not compressed")]
    events: Annotated[int, told("Events read from it.")]
    recovered_events: Annotated[int | None, told("Events saved from a damaged file.", null="the file was sound")]
    skipped: Annotated[str | None, told("Why the file holds no trace.", null="it was read")]


class RanksClock(Part):
    """How the ranks' clocks were put on one."""

    method: Annotated[str, told("baseTimeNanoseconds, matched collectives, file clock, or single rank.")]
    residual_us: Annotated[
        float | None, told("Median distance of the ends of one call after that.", null="no paired call")
    ]
    calls: Annotated[int, told("Calls that the residual rests on.")]
    offsets_us: Annotated[dict[str, float], told("By rank, what was added to its times.")]
    unaligned: Annotated[list[int], told("Ranks that no collective ties to the others.")]


class RanksCollective(Part):
    """TODO"""

    kind: Annotated[
        str, told("all_reduce, all_gather, reduce_scatter, all_to_all, dispatch, combine, send_recv, broadcast, ...")
    ]
    ranks: Annotated[list[int], told("Its ranks.")]
    basis: Annotated[str | None, told("How it is known which ranks share it.", null="not known")]
    calls: Annotated[int, told("Paired calls.")]
    transfer_us: Annotated[float, told("Least time over the ranks of each call, summed.")]
    wait_us: Annotated[dict[str, float], told("By rank, its time beyond the transfer.")]
    late_rank: Annotated[dict[str, int], told("By rank, calls that it was the last to arrive at.")]
    caused_wait_us: Annotated[dict[str, float], told("By late rank, the longest wait of those calls, summed.")]
    bytes: Annotated[int | None, told("Message sizes of the calls that record one.", null="none does")]
    bus_gbps: Annotated[float | None, told("Bus bandwidth of those calls.", null="not known")]
    link_gbps: Annotated[float | None, told("Peak of the link in one direction.", null="not known")]
    link_share: Annotated[float | None, told("bus_gbps over link_gbps.", null="not known")]


class RanksCause(Part):
    """TODO"""

    ranks: Annotated[list[int], told("The group.")]
    late_rank: Annotated[int, told("The late rank.")]
    kernel: Annotated[str | None, told("Kernel that took longer than on the others.", null="the rank was idle")]
    role: Annotated[str | None, told("Its role.", null="not known")]
    calls: Annotated[int, told("Calls for which it was the largest cause.")]
    extra_us: Annotated[float, told("Time beyond the others' median, in those calls.")]
    own_us: Annotated[float | None, told("Its time in those calls.", null="not compared")]
    others_us: Annotated[float | None, told("The others' median.", null="not compared")]
    wait_us: Annotated[float, told("Longest wait of those calls, summed.")]


class RanksUnpaired(Part):
    """TODO"""

    kind: Annotated[str, told("Kind of collective.")]
    ranks: Annotated[list[int], told("The group.")]
    rank: Annotated[int, told("The rank that recorded them.")]
    calls: Annotated[int, told("How many.")]


class RanksPerRank(Part):
    """TODO"""

    rank: Annotated[int, told("Rank in the job.")]
    dp: Annotated[int | None, told("Data-parallel rank.", null="not known")]
    pp: Annotated[int | None, told("Pipeline-parallel rank.", null="not known")]
    tp: Annotated[int | None, told("Tensor-parallel rank.", null="not known")]
    compute_us: Annotated[float, told("A kernel runs that is no communication.")]
    comm_us: Annotated[float, told("A communication kernel runs.")]
    exposed_comm_us: Annotated[float, told("Part of it in which no other kernel runs.")]
    exposed_copy_us: Annotated[float, told("Only copies or memsets run.")]
    idle_us: Annotated[float, told("Nothing runs.")]
    span_us: Annotated[float, told("First to last event.")]
    wait_us: Annotated[float | None, told("Waiting in paired calls.", null="no paired call")]
    stage: Annotated[int | None, told("Pipeline stage.", null="not known")]
    layers: Annotated[int | None, told("Transformer blocks a step.", null="not known")]
    steps: Annotated[int, told("Complete steps that are no dummies.")]


class RanksExpert(Part):
    """Time of expert kernels. Null: the job has none."""

    per_rank_us: Annotated[dict[str, float], told("By rank, in complete steps.")]
    max_over_mean: Annotated[float | None, told("Busiest rank over the mean, both a step.", null="not known")]
    coefficient_of_variation: Annotated[float | None, told("Standard deviation over mean.", null="not known")]
    combine_wait_us: Annotated[
        dict[str, float] | None, told("By rank, waiting in the exchange after the experts.", null="there is none")
    ]
    expert_parallel: Annotated[bool, told("Whether tokens go to other ranks' experts.")]


class RanksStage(Part):
    """TODO"""

    stage: Annotated[int, told("Number.")]
    ranks: Annotated[list[int], told("Its ranks.")]
    layers: Annotated[int | None, told("Transformer blocks.", null="not known")]
    cycle_us: Annotated[float, told("Start of a step to the start of the next.")]
    work_us: Annotated[float, told("Kernels but sends and receives.")]
    transfer_us: Annotated[float, told("Sends and receives without waiting.")]
    wait_us: Annotated[float, told("Waiting in them.")]
    idle_us: Annotated[float, told("The rest.")]
    bubble_share: Annotated[float, told("Neither work nor transfer.")]


class RanksPipeline(Part):
    """Pipeline stages. Null: the job has one stage."""

    bubble_share: Annotated[
        float | None, told("Share of all stages' time without work or transfer.", null="no complete step")
    ]
    layers_per_stage: Annotated[
        list[int | None], told("Blocks of each stage; null where its ranks disagree or none is at hand.")
    ]
    layers_total: Annotated[int | None, told("Their sum.", null="one is not known")]
    cycles: Annotated[int, told("Cycles that this rests on.")]
    stages: Annotated[list[RanksStage], told("Means a cycle.")]


class RanksDummyStep(Part):
    """TODO"""

    rank: Annotated[int, told("Rank in the job.")]
    steps: Annotated[int, told("Complete steps, dummies included.")]
    dummy_steps: Annotated[int, told("Dummies among them.")]
    dummy_us: Annotated[float, told("Their span.")]


class RanksFinding(Part):
    """TODO"""

    code: Annotated[str, told("Stable identifier; see warnings.md.")]
    message: Annotated[str, told("A sentence for a person.")]
    worth_us: Annotated[float | None, told("Time a step that could be won at most.", null="not known")]
    worth_share: Annotated[float | None, told("The same over the step's time.", null="not known")]


class RanksTemporal(Part):
    """TODO"""

    rank: Annotated[int, told("Rank.")]
    idle_us: Annotated[float | None, told("Idle.", null="not a number")]
    compute_us: Annotated[float | None, told("Computing.", null="not a number")]
    non_compute_us: Annotated[float | None, told("Other kernels.", null="not a number")]
    kernel_time_us: Annotated[float | None, told("Whole time.", null="not a number")]


class RanksOverlap(Part):
    """TODO"""

    rank: Annotated[int, told("Rank.")]
    overlap_percent: Annotated[float | None, told("Share covered.", null="not a number")]


class RanksIdle(Part):
    """TODO"""

    rank: Annotated[int, told("Rank.")]
    stream: Annotated[int, told("Stream.")]
    category: Annotated[str, told("host_wait, kernel_wait or other.")]
    idle_us: Annotated[float | None, told("Time.", null="not a number")]


class RanksQueue(Part):
    """TODO"""

    rank: Annotated[int, told("Rank.")]
    stream: Annotated[int, told("Stream.")]
    mean: Annotated[float | None, told("Mean.", null="not a number")]
    max: Annotated[float | None, told("Longest.", null="not a number")]


class RanksCriticalPath(Part):
    """TODO"""

    rank: Annotated[int, told("Rank.")]
    bound_by: Annotated[str, told("What bounds it.")]
    share: Annotated[float | None, told("Of the path.", null="not a number")]


class RanksHta(Part):
    """What HolisticTraceAnalysis makes of the same events. Null: no --hta."""

    temporal: Annotated[list[RanksTemporal], told("Time by rank.")]
    overlap: Annotated[list[RanksOverlap], told("Communication that computation covers.")]
    idle: Annotated[list[RanksIdle], told("Idle time by stream.")]
    queue: Annotated[list[RanksQueue], told("Length of the launch queue.")]
    critical_path: Annotated[list[RanksCriticalPath], told("Critical path of an eager step.")]
    notes: Annotated[list[str], told("What not to believe, and analyses that failed.")]


class RanksDocument(Document, tag="traceanalyzer/ranks/1"):
    """The ranks of a job side by side. Times over the whole recording unless said."""

    command: ClassVar[str] = "ranks"

    ranks: Annotated[list[int], told("Ranks at hand.")]
    missing: Annotated[list[int], told("Ranks of the job without a trace.")]
    world_size: Annotated[int, told("Ranks of the job, at least those at hand.")]
    layout: Annotated[RanksLayout, told("Sizes of the parallel layout.")]
    layout_source: Annotated[str | None, told("How the layout is known.", null="not known")]
    table: Annotated[list[RanksTable], told("Where each rank stands.")]
    skipped: Annotated[list[RanksSkipped], told("Files that hold no trace.")]
    clocks: Annotated[RanksClock, told("How the ranks' clocks were put on one.")]
    collectives: Annotated[list[RanksCollective], told("By kind and group.")]
    causes: Annotated[list[RanksCause], told("Why ranks arrived late, largest first.")]
    unpaired: Annotated[list[RanksUnpaired], told("Calls without a partner on the other ranks.")]
    per_rank: Annotated[
        list[RanksPerRank],
        told("How each rank spends its time; compute, exposed communication, exposed copies and idle sum to the span."),
    ]
    experts: Annotated[RanksExpert | None, told("Time of expert kernels.", null="the job has none")]
    pipeline: Annotated[RanksPipeline | None, told("Pipeline stages.", null="the job has one stage")]
    dummy_steps: Annotated[list[RanksDummyStep], told("Ranks that ran steps without requests of their own.")]
    findings: Annotated[list[RanksFinding], told("What to act on.")]
    hta: Annotated[RanksHta | None, told("What HolisticTraceAnalysis makes of the same events.", null="no --hta")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
