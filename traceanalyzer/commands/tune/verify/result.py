"""What `traceanalyzer tune verify` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.commands.tune.measure.result import Measured, MeasuredProblem, MeasuredTile
from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.result import ServingDocument
from traceanalyzer.words import Phase

Attribution = Literal["tile", "partly", "other", "hidden", "none", "unclear"]
StepVerdict = Literal["faster", "slower", "same", "unclear"]
KernelVerdict = Literal["faster", "slower", "same", "unclear", "failed"]


class ChangedTime(Part):
    """A mean per step, before and after."""

    before_us: Annotated[float, told("Before.")]
    after_us: Annotated[float, told("After.")]
    delta_us: Annotated[float, told("After less before.")]
    change_percent: Annotated[float | None, told("Change.", null="before is 0")]
    half_interval_us: Annotated[
        float | None, told("Half of the 95 % interval of the difference.", null="too few steps")
    ]
    verdict: Annotated[StepVerdict, told("same: certainly within 1 %.")]


class RetunedKernel(Part):
    """A position of the step."""

    role: Annotated[str | None, told("Role of the kernel.", null="unknown")]
    block_kind: Annotated[str | None, told("Kind of the blocks.", null="outside of blocks, or the kind has no name")]
    name_before: Annotated[str | None, told("Kernel before.", null="the position is new")]
    name_after: Annotated[str | None, told("Kernel after.", null="the position is gone")]
    what: Annotated[str, told("What changed, in words.")]
    tile: Annotated[bool, told("Whether it is a change of tile, warps, split-k or launch.")]
    before_us: Annotated[float, told("Time per step before.")]
    after_us: Annotated[float, told("Time per step after.")]
    delta_us: Annotated[float, told("After less before.")]


class ComparedSteps(Part):
    """Steps of one phase and batch that were compared."""

    phase: Annotated[Phase, told("Their phase.")]
    requests: Annotated[int | None, told("Sequences per step.", null="unknown, or batches differ")]
    steps_before: Annotated[int, told("Steps before.")]
    steps_after: Annotated[int, told("Steps after.")]


class TraceOutcome(Part):
    """The step, from --before and --after."""

    attribution: Annotated[
        Attribution,
        told(
            "What explains the step's change: tile, partly, other, hidden (kernels whose names lack the tile), none "
            "(no tile changed), unclear (noise or too few steps)."
        ),
    ]
    message: Annotated[str, told("The same in words.")]
    step: Annotated[ChangedTime, told("Device time per step.")]
    tile: Annotated[ChangedTime | None, told("Kernels whose tile changed.", null="none changed")]
    rest_us: Annotated[float, told("The rest of the step's change.")]
    period: Annotated[ChangedTime | None, told("A step with the pause before it.", null="no pause is known")]
    kernels: Annotated[list[RetunedKernel], told("Kernels that changed, the largest change first.")]
    hidden: Annotated[list[RetunedKernel], told("Retunable kernels that changed under the same name.")]
    steps: Annotated[list[ComparedSteps], told("The steps compared.")]
    warnings: Annotated[list[TraceWarning], told("Reservations about the figures; also printed on stderr.")]


class TpotAtLoad(Part):
    """Change of TPOT at one load, as the benchmark measured it."""

    concurrency: Annotated[float | None, told("Most requests in flight.", null="unlimited or unknown")]
    change_percent: Annotated[float | None, told("Change of the mean.", null="a side is missing")]
    verdict: Annotated[
        Literal["better", "worse", "same"] | None,
        told("As in serving compare.", null="the sides did not do the same work"),
    ]


class TpotChange(Part):
    """Change of the time per output token, by either source."""

    traces_change_percent: Annotated[
        float | None, told("By the traces.", null="no traces, or not every step gives each sequence one token")
    ]
    serving: Annotated[list[TpotAtLoad], told("By the benchmark.")]


class TuneOutcomeDocument(Document, tag="traceanalyzer/tune-outcome/1"):
    """What a change of tile brought end to end: without --kernel, from traces, serving results or both."""

    command: ClassVar[str] = "tune verify"

    traces: Annotated[TraceOutcome | None, told("The step, from --before and --after.", null="no traces were given")]
    serving: Annotated[
        ServingDocument | None,
        told("The document of serving compare for the results given.", null="no results were given"),
    ]
    tpot: Annotated[TpotChange, told("Change of the time per output token, by either source.")]


class VerifiedProblem(MeasuredProblem):
    """Two tiles on one product."""

    before: Annotated[MeasuredTile, told("The tile so far.")]
    after: Annotated[MeasuredTile, told("The new tile.")]
    ratio: Annotated[
        float | None, told("Time after over time before.", null="one of them has no samples", unit="ratio")
    ]
    ratio_interval: Annotated[
        tuple[float, float] | None, told("95 % interval of the ratio.", null="one of them has no samples", unit="ratio")
    ]
    verdict: Annotated[KernelVerdict, told("same: within 1 %; unclear: the interval holds 1, or too few rounds.")]


class TuneVerifyDocument(Measured, Document, tag="traceanalyzer/tune-verify/1"):
    """Two tiles measured in turns."""

    command: ClassVar[str] = "tune verify --kernel ..."

    problems: Annotated[list[VerifiedProblem], told("By m and routing.")]
