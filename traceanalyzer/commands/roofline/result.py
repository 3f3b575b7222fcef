"""What `traceanalyzer roofline` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.findings import FindingEntry


class RooflineGpu(Part):
    """The GPU."""

    name: Annotated[str | None, told("Name.", null="not known")]
    source: Annotated[Literal["trace", "fingerprint", "option"] | None, told("How it is known.", null="not known")]
    peak_tflops: Annotated[dict[str, float], told("Dense peaks by data type; empty without a known GPU.")]
    bandwidth_gbps: Annotated[float | None, told("Peak memory bandwidth.", null="not known")]
    achievable_tflops: Annotated[dict[str, float], told("What good kernels reach, by data type.")]
    achievable_gbps: Annotated[float | None, told("Bandwidth that good kernels reach.", null="not known")]


class RooflineModel(Part):
    """The model."""

    name: Annotated[str | None, told("Name.", null="neither stated nor recognised")]
    source: Annotated[
        Literal["option", "inferred"] | None,
        told("Stated with --model, or recognised from the trace.", null="no model"),
    ]


class RooflineRow(Part):
    """TODO"""

    role: Annotated[
        Literal[
            "norm",
            "qkv_proj",
            "rope",
            "kv_write",
            "attention",
            "o_proj",
            "router",
            "moe_routing",
            "moe_gate_up",
            "moe_down",
            "moe_combine",
            "gate_up",
            "down",
            "activation",
            "quantize",
            "communication",
            "copy",
            "embedding",
            "lm_head",
            "sampler",
            "other",
        ],
        told("Role."),
    ]
    kind: Annotated[str | None, told("Kind of the blocks.", null="kinds are not told apart")]
    part: Annotated[
        str | None, told("What the kernels are, where a role has work of several sorts.", null="the role's own work")
    ]
    kernels: Annotated[list[str], told("Names, most time first.")]
    count: Annotated[float, told("Kernels a step.")]
    measured_us: Annotated[float, told("Their time.")]
    share: Annotated[float | None, told("Of measured_us of the step.", null="nothing was measured")]
    flops: Annotated[float | None, told("Operations that the result needs.", null="not known", unit="operations")]
    bytes: Annotated[
        float | None,
        told("Bytes of device memory that it needs to move; of communication, that have to be sent.", null="not known"),
    ]
    intensity: Annotated[float | None, told("Operations a byte.", null="not known", unit="FLOP/byte")]
    tflops: Annotated[float | None, told("Operations reached.", null="not known")]
    gbps: Annotated[float | None, told("Bandwidth reached.", null="not known", unit="GB/s")]
    dtype: Annotated[str | None, told("Data type whose peak bounds the arithmetic.", null="not known")]
    bound: Annotated[Literal["compute", "memory", "latency", "communication", "unknown"], told("What bounds it.")]
    floor_us: Annotated[float | None, told("Shortest time that the peak roofs allow.", null="not known")]
    roof_share: Annotated[
        float | None, told("Floor over measured time; above 1 only where not plausible.", null="not known")
    ]
    headroom_us: Annotated[
        float | None,
        told(
            "Measured time less the larger of floor and launch latency; all of it where redundant.",
            null="not known or not plausible",
        ),
    ]
    reachable_us: Annotated[float | None, told("Shortest time that the achievable roofs allow.", null="not known")]
    reachable_headroom_us: Annotated[float | None, told("Time above that.", null="not known or not plausible")]
    latency_us: Annotated[float, told("What as many kernels take that do next to nothing.")]
    plausible: Annotated[bool, told("False where the kernels are faster than their floor.")]
    redundant: Annotated[bool, told("Whether the work need not be done at all.")]
    source: Annotated[
        Literal["shapes", "model"] | None, told("Where operations and bytes come from.", null="not known")
    ]
    basis: Annotated[list[str], told("What the figures rest on, or why they are unknown.")]


class RooflineAssumption(Part):
    """TODO"""

    role: Annotated[
        Literal[
            "norm",
            "qkv_proj",
            "rope",
            "kv_write",
            "attention",
            "o_proj",
            "router",
            "moe_routing",
            "moe_gate_up",
            "moe_down",
            "moe_combine",
            "gate_up",
            "down",
            "activation",
            "quantize",
            "communication",
            "copy",
            "embedding",
            "lm_head",
            "sampler",
            "other",
        ],
        told("Role."),
    ]
    kind: Annotated[str | None, told("Kind of the blocks.", null="all")]
    share: Annotated[float, told("Share of its roof that is assumed.")]
    share_before: Annotated[float | None, told("Share measured.", null="not known", unit="share, 1 is all")]
    before_us: Annotated[float, told("Time measured.")]
    after_us: Annotated[float, told("Time assumed.")]


class RooflineStepU(Part):
    """Time of a step."""

    before: Annotated[float | None, told("Measured.", null="not known", unit="µs")]
    after: Annotated[float | None, told("Assumed.", null="not known", unit="µs")]


class RooflineTpotU(Part):
    """Time of an output token."""

    before: Annotated[float | None, told("Measured.", null="steps do not give each sequence one token", unit="µs")]
    after: Annotated[float | None, told("Assumed.", null="likewise", unit="µs")]


class RooflineTokensPer(Part):
    """Output of the batch."""

    before: Annotated[float | None, told("Measured.", null="the batch is not known", unit="tokens/s")]
    after: Annotated[float | None, told("Assumed.", null="likewise", unit="tokens/s")]


class RooflineWhatIf(Part):
    """The step under the assumptions of --assume. Null: none were given."""

    assumptions: Annotated[list[RooflineAssumption], told("One for each.")]
    step_us: Annotated[RooflineStepU, told("Time of a step.", unit="")]
    tpot_us: Annotated[RooflineTpotU, told("Time of an output token.", unit="")]
    tokens_per_s: Annotated[RooflineTokensPer, told("Output of the batch.")]


class RooflineDocument(Document, tag="traceanalyzer/roofline/1"):
    """What bounds each kind of work and how far it is from its roof. All figures are means a step."""

    command: ClassVar[str] = "roofline"

    phase: Annotated[
        Literal["decode", "prefill", "mixed", "dummy", "unknown"] | None,
        told("Phase of the steps.", null="they are of several"),
    ]
    steps: Annotated[int, told("Steps looked at.")]
    gpu: Annotated[RooflineGpu, told("The GPU.")]
    model: Annotated[RooflineModel, told("The model.")]
    measured_us: Annotated[float, told("Kernel time of a step; the rows' measured_us sum to it.")]
    floor_us: Annotated[
        float | None,
        told(
            "Sum of the rows' floors, redundant rows left out, no row above its measured time.",
            null="no row has a floor",
        ),
    ]
    reachable_us: Annotated[float | None, told("The same under the achievable roofs.", null="likewise")]
    explained_share: Annotated[
        float, told("Of the measured time: in rows with a plausible floor or known to be launch latency.")
    ]
    copies_us: Annotated[float, told("Copies and memsets beside the kernels.")]
    step_us: Annotated[float, told("First to last event of a step.")]
    period_us: Annotated[float, told("Step and the pause before it.")]
    latency_us: Annotated[float, told("What a kernel takes that does next to nothing.")]
    rows: Annotated[
        list[RooflineRow], told("Kernels of one role, and of one kind of block where kinds do different work.")
    ]
    findings: Annotated[list[FindingEntry], told("What to act on, most worth first; the last one says what to attack.")]
    what_if: Annotated[
        RooflineWhatIf | None, told("The step under the assumptions of --assume.", null="none were given")
    ]
    basis: Annotated[list[str], told("What the whole rests on.")]
