"""What `traceanalyzer tune plan` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told


class TunePlanMFlip(Part):
    """TODO"""

    m: Annotated[int, told("Rows.")]
    why: Annotated[str, told("What changes there.")]


class TunePlanDistinctExpert(Part):
    """TODO"""

    m: Annotated[int, told("Rows.")]
    experts: Annotated[float, told("Expected number.")]


class TunePlanDtype(Part):
    """Element types."""

    output: Annotated[str | None, told("Of the result.", null="not known")]
    activation: Annotated[str | None, told("Of the activations.", null="not known")]
    weight: Annotated[str | None, told("Of the weights.", null="not known")]


class TunePlanTarget(Part):
    """What to tune. Null: nothing can be said to be worth it; reason says why."""

    kernel: Annotated[str, told("Kernel name.")]
    role: Annotated[str, told("What it does.")]
    roles: Annotated[list[str], told("All roles that one configuration serves.")]
    n: Annotated[int | None, told("Columns of the product on one rank.", null="not known")]
    k: Annotated[int | None, told("Inner size of the product.", null="not known")]
    tile: Annotated[
        str | None, told("MxNxK; ? for an unknown side.", null="neither the name nor the Triton cache tells")
    ]
    measured_us: Annotated[float, told("Its time.")]
    floor_us: Annotated[float | None, told("Shortest time that the peak roofs allow.", null="not known")]
    worth_us_per_step: Annotated[float | None, told("What a win can bring at most.", null="not known", unit="µs")]
    knob: Annotated[str | None, told("Through what its tile is changed.", null="not known")]
    m: Annotated[list[int], told("Rows to tune: those seen, then both sides of flips.")]
    m_seen: Annotated[list[int], told("Rows seen in the trace.")]
    m_flips: Annotated[list[TunePlanMFlip], told("Rows at which a heuristic changes.")]
    experts: Annotated[int | None, told("Experts on this rank.", null="a dense product")]
    top_k: Annotated[int | None, told("Experts a token.", null="a dense product")]
    distinct_experts: Annotated[list[TunePlanDistinctExpert], told("Experts that get a token.")]
    executed_n: Annotated[int | None, told("n as the kernel runs it, padding included.", null="not known")]
    executed_k: Annotated[int | None, told("k as the kernel runs it, padding included.", null="not known")]
    dtypes: Annotated[TunePlanDtype, told("Element types.")]
    split_k: Annotated[int | None, told("Parts of the reduction.", null="not known")]
    num_warps: Annotated[int | None, told("Warps of a thread block.", null="not known")]
    num_stages: Annotated[int | None, told("Depth of the software pipeline.", null="not known")]
    registers: Annotated[int | None, told("Registers a thread.", null="no Triton cache")]
    spills: Annotated[int | None, told("Registers spilled.", null="no Triton cache")]
    count: Annotated[float, told("Launches a step.")]
    bound: Annotated[Literal["compute", "memory", "latency", "communication", "unknown"], told("What bounds it.")]
    worth_reachable_us_per_step: Annotated[
        float | None, told("What a win can bring under the achievable roofs.", null="not known", unit="µs")
    ]
    worth_tpot_percent: Annotated[
        float | None,
        told("The win over the time of an output token.", null="not every step gives each sequence one token"),
    ]
    measurable: Annotated[bool, told("Whether tune run can measure it.")]
    not_measurable: Annotated[str | None, told("Why not.", null="it can")]
    basis: Annotated[list[str], told("What the figures rest on.")]


class TunePlanRefused(Part):
    """TODO"""

    kernel: Annotated[str, told("Kernel name.")]
    role: Annotated[str, told("What it does.")]
    measured_us: Annotated[float, told("Its time.")]
    worth_us_per_step: Annotated[float | None, told("What a win would bring at most.", null="not known", unit="µs")]
    reason: Annotated[str, told("Why it is refused.")]


class TunePlanCandidate(Part):
    """TODO"""

    kernel: Annotated[str, told("Kernel name.")]
    role: Annotated[str, told("What it does.")]
    roles: Annotated[list[str], told("All roles that one configuration serves.")]
    n: Annotated[int | None, told("Columns of the product.", null="not known")]
    k: Annotated[int | None, told("Inner size.", null="not known")]
    tile: Annotated[str | None, told("MxNxK.", null="the name does not tell")]
    measured_us: Annotated[float, told("Its time.")]
    floor_us: Annotated[float | None, told("Shortest time that the peak roofs allow.", null="not known")]
    worth_us_per_step: Annotated[float | None, told("What a win can bring at most.", null="not known", unit="µs")]
    knob: Annotated[str | None, told("Through what its tile is changed.", null="not known")]


class TunePlanDocument(Document, tag="traceanalyzer/tune-plan/1"):
    """The kernel of a trace that is worth tuning, and why others are not. Times are means a step."""

    command: ClassVar[str] = "tune plan"

    target: Annotated[
        TunePlanTarget | None, told("What to tune.", null="nothing can be said to be worth it; reason says why")
    ]
    reason: Annotated[str | None, told("Why there is no target, and what to pass.", null="there is one")]
    refused: Annotated[
        list[TunePlanRefused],
        told("Kernels with a noticeable share of the step that are not to be tuned, those worth most first."),
    ]
    candidates: Annotated[list[TunePlanCandidate], told("What to tune after the target, those worth most first.")]
    next: Annotated[list[str], told("Commands to run next.")]
    model: Annotated[str | None, told("The model.", null="neither stated nor recognised")]
    model_source: Annotated[Literal["option", "inferred"] | None, told("How it is known.", null="no model")]
    gpu: Annotated[str | None, told("The GPU.", null="not known")]
    phase: Annotated[
        Literal["decode", "prefill", "mixed", "dummy", "unknown"] | None,
        told("Phase of the steps.", null="they are of several"),
    ]
    steps: Annotated[int, told("Steps looked at.")]
    step_us: Annotated[float, told("Step and the pause before it.")]
    least_worth_percent: Annotated[float, told("Share of the step below which a win is not worth tuning.")]
    basis: Annotated[list[str], told("What the whole rests on.")]
