"""What `traceanalyzer tune plan` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.names.kernel_name import Dtypes
from traceanalyzer.words import Phase

BoundKind = Literal["compute", "memory", "latency", "communication", "unknown"]


class RowFlip(Part):
    """A number of rows at which a library's heuristic changes."""

    m: Annotated[int, told("Rows.")]
    why: Annotated[str, told("What changes there.")]


class ExpertsHit(Part):
    """Experts that get a token, for a number of rows."""

    m: Annotated[int, told("Rows.")]
    experts: Annotated[float, told("Expected number.", basis="modelled")]


class PlannedKernel(Part):
    """A kernel that is worth tuning. Times are means per step."""

    kernel: Annotated[str, told("Kernel name.")]
    role: Annotated[str, told("What it does.")]
    roles: Annotated[list[str], told("All roles that one configuration serves.")]
    n: Annotated[int | None, told("Columns of the product on one rank.", null="unknown")]
    k: Annotated[int | None, told("Inner size of the product.", null="unknown")]
    tile: Annotated[str | None, told("MxNxK; ? for an unknown side.", null="not in the name or the Triton cache")]
    measured_us: Annotated[float, told("Its time.", basis="measured")]
    floor_us: Annotated[
        float | None, told("Shortest time that the peak roofs allow.", null="unknown", basis="modelled")
    ]
    worth_us_per_step: Annotated[
        float | None, told("Most that a better tile can save.", null="unknown", unit="µs", basis="modelled")
    ]
    knob: Annotated[str | None, told("How its tile is changed.", null="unknown")]


class TuningTarget(PlannedKernel):
    """What to tune."""

    m: Annotated[list[int], told("Rows to tune: those seen, then both sides of flips.")]
    m_seen: Annotated[list[int], told("Rows seen in the trace.")]
    m_flips: Annotated[list[RowFlip], told("Rows at which a heuristic changes.")]
    experts: Annotated[int | None, told("Experts on this rank.", null="a dense product")]
    top_k: Annotated[int | None, told("Experts per token.", null="a dense product")]
    distinct_experts: Annotated[list[ExpertsHit], told("Experts that get a token.")]
    executed_n: Annotated[int | None, told("n as the kernel runs it, padding included.", null="unknown")]
    executed_k: Annotated[int | None, told("k as the kernel runs it, padding included.", null="unknown")]
    dtypes: Annotated[Dtypes, told("Element types.")]
    split_k: Annotated[int | None, told("Parts of the reduction.", null="unknown")]
    num_warps: Annotated[int | None, told("Warps per thread block.", null="unknown")]
    num_stages: Annotated[int | None, told("Depth of the software pipeline.", null="unknown")]
    registers: Annotated[int | None, told("Registers per thread.", null="no Triton cache")]
    spills: Annotated[int | None, told("Registers spilled.", null="no Triton cache")]
    count: Annotated[float, told("Launches per step.")]
    bound: Annotated[BoundKind, told("What limits it, by the roofline.")]
    worth_reachable_us_per_step: Annotated[
        float | None,
        told("Most that it can save under the achievable roofs.", null="unknown", unit="µs", basis="modelled"),
    ]
    worth_tpot_percent: Annotated[
        float | None,
        told("The saving over the time per output token.", null="not every step gives each sequence one token"),
    ]
    measurable: Annotated[bool, told("Whether tune run can measure it.")]
    not_measurable: Annotated[str | None, told("Why not.", null="it can")]
    basis: Annotated[list[str], told("What the figures are based on.")]


class NotTuned(Part):
    """A kernel that cannot be tuned or is not worth tuning."""

    kernel: Annotated[str, told("Kernel name.")]
    role: Annotated[str, told("What it does.")]
    measured_us: Annotated[float, told("Its time.", basis="measured")]
    worth_us_per_step: Annotated[
        float | None, told("Most that a better tile would save.", null="unknown", unit="µs", basis="modelled")
    ]
    reason: Annotated[str, told("Why not.")]


class TunePlanDocument(Document, tag="traceanalyzer/tune-plan/1"):
    """The kernel of a trace that is worth tuning, and why others are not. Times are means per step."""

    command: ClassVar[str] = "tune plan"

    target: Annotated[
        TuningTarget | None, told("What to tune.", null="nothing is known to be worth it; reason says why")
    ]
    reason: Annotated[str | None, told("Why there is no target, and what to pass.", null="there is one")]
    refused: Annotated[
        list[NotTuned],
        told("Kernels with a noticeable share of the step that cannot be tuned or are not worth it."),
    ]
    candidates: Annotated[list[PlannedKernel], told("What to tune after the target, the largest saving first.")]
    next: Annotated[list[str], told("Commands to run next.")]
    model: Annotated[str | None, told("The model.", null="neither stated nor recognised")]
    model_source: Annotated[Literal["option", "inferred"] | None, told("How it is known.", null="no model")]
    gpu: Annotated[str | None, told("The GPU.", null="unknown")]
    phase: Annotated[
        Phase | None,
        told("Phase of the steps.", null="they are of several"),
    ]
    steps: Annotated[int, told("Steps looked at.")]
    step_us: Annotated[float, told("Step and the pause before it.")]
    least_worth_percent: Annotated[float, told("Share of the step below which a saving is not worth tuning.")]
    basis: Annotated[list[str], told("What the plan is based on.")]
