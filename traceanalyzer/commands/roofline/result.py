"""What `traceanalyzer roofline` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.findings import Finding
from traceanalyzer.words import Phase, Role

Limit = Literal["compute", "memory", "latency", "communication", "unknown"]


class RooflineGpu(Part):
    """The GPU."""

    name: Annotated[str | None, told("Name.", null="unknown")]
    source: Annotated[Literal["trace", "fingerprint", "option"] | None, told("How it is known.", null="unknown")]
    peak_tflops: Annotated[dict[str, float], told("Dense peaks by data type; empty without a known GPU.")]
    bandwidth_gbps: Annotated[float | None, told("Peak memory bandwidth.", null="unknown")]
    achievable_tflops: Annotated[dict[str, float], told("What good kernels reach, by data type.")]
    achievable_gbps: Annotated[float | None, told("Bandwidth that good kernels reach.", null="unknown")]


class RooflineModel(Part):
    """The model."""

    name: Annotated[str | None, told("Name.", null="neither stated nor recognised")]
    source: Annotated[
        Literal["option", "inferred"] | None,
        told("Stated with --model, or recognised from the trace.", null="no model"),
    ]


class RooflineRow(Part):
    """Kernels of one role, and of one kind of block where kinds do different work. Figures are means per step."""

    csv_title: ClassVar[str] = "roofline --csv"

    role: Annotated[Role, told("Role.")]
    kind: Annotated[str | None, told("Kind of the blocks.", null="kinds are not told apart")]
    part: Annotated[
        str | None, told("What the kernels are, where a role has work of several sorts.", null="the role's own work")
    ]
    kernels: Annotated[list[str], told("Names, most time first.", csv=False)]
    count: Annotated[float, told("Kernels per step.", heading="n")]
    measured_us: Annotated[float, told("Their time.", basis="measured", heading="µs")]
    share: Annotated[float | None, told("Of measured_us of the step.", null="nothing was measured", heading="%")]
    flops: Annotated[
        float | None,
        told("Operations that the result needs.", null="unknown", unit="operations", basis="derived"),
    ]
    bytes: Annotated[
        float | None,
        told(
            "Bytes of device memory that it needs to move; of communication, bytes to send.",
            null="unknown",
            basis="derived",
        ),
    ]
    intensity: Annotated[float | None, told("Operations per byte.", null="unknown", unit="FLOP/byte", heading="FLOP/B")]
    tflops: Annotated[float | None, told("Operations reached.", null="unknown", heading="TFLOP/s")]
    gbps: Annotated[float | None, told("Bandwidth reached.", null="unknown", unit="GB/s", heading="GB/s")]
    dtype: Annotated[str | None, told("Data type whose peak limits the arithmetic.", null="unknown")]
    bound: Annotated[Limit, told("What limits it.", heading="limit")]
    floor_us: Annotated[
        float | None, told("Shortest time that the peak roofs allow.", null="unknown", basis="modelled")
    ]
    roof_share: Annotated[
        float | None,
        told("Floor over measured time; above 1 only where not plausible.", null="unknown", heading="roof %"),
    ]
    headroom_us: Annotated[
        float | None,
        told(
            "Measured time less the larger of floor and launch latency; all of it where redundant.",
            null="unknown or not plausible",
        ),
    ]
    reachable_us: Annotated[
        float | None, told("Shortest time that the achievable roofs allow.", null="unknown", basis="modelled")
    ]
    reachable_headroom_us: Annotated[float | None, told("Time above that.", null="unknown or not plausible")]
    latency_us: Annotated[float, told("What as many kernels take that do next to nothing.")]
    plausible: Annotated[bool, told("False where the kernels are faster than their floor.")]
    redundant: Annotated[bool, told("Whether the work is unnecessary.")]
    source: Annotated[Literal["shapes", "model"] | None, told("Where operations and bytes come from.", null="unknown")]
    basis: Annotated[list[str], told("What the figures rest on, or why they are unknown.", csv=False)]


class RooflineKernel(Part):
    """A kernel of the steps looked at. Its frame has more columns, which may change."""

    frame_title: ClassVar[str] = "Roofline.kernels"

    device: Annotated[int | None, told("Number of the GPU.", null="CPU ops only", frame=InFrame("Int32"))]
    step: Annotated[int | None, told("Step of the kernel.", null="the trace has no steps", frame=InFrame("Int32"))]
    index: Annotated[int, told("Position in the file's event list.")]
    name: Annotated[str, told("Of the kernel.")]
    role: Annotated[str | None, told("What it does.", null="unknown")]
    row: Annotated[int, told("The row of Roofline.rows that holds it, from 0.", frame=InFrame("UInt32"))]
    dur_us: Annotated[float, told("Its time.", basis="measured")]
    floor_us: Annotated[
        float | None,
        told("Shortest time that the peak roofs allow.", null="its work is unknown", frame=InFrame("Float64")),
    ]
    headroom_us: Annotated[
        float | None,
        told("Time above floor and launch latency.", null="unknown or not plausible", frame=InFrame("Float64")),
    ]


class RooflineAssumption(Part):
    """What one --assume changes."""

    role: Annotated[Role, told("Role.")]
    kind: Annotated[str | None, told("Kind of the blocks.", null="all")]
    share: Annotated[float, told("Share of its roof that is assumed.", basis="assumed")]
    share_before: Annotated[float | None, told("Share measured.", null="unknown", unit="share, 1 is all")]
    before_us: Annotated[float, told("Time measured.")]
    after_us: Annotated[float, told("Time under the assumption.", basis="modelled")]


class AssumedStep(Part):
    """Time per step."""

    before: Annotated[float | None, told("Measured.", null="unknown", unit="µs")]
    after: Annotated[float | None, told("Under the assumptions.", null="unknown", unit="µs", basis="modelled")]


class AssumedTokenTime(Part):
    """Time per output token."""

    before: Annotated[float | None, told("Measured.", null="steps do not give each sequence one token", unit="µs")]
    after: Annotated[float | None, told("Under the assumptions.", null="likewise", unit="µs", basis="modelled")]


class AssumedTokenRate(Part):
    """Output of the batch."""

    before: Annotated[float | None, told("Measured.", null="the batch is unknown", unit="tokens/s")]
    after: Annotated[float | None, told("Under the assumptions.", null="likewise", unit="tokens/s", basis="modelled")]


class RooflineWhatIf(Part):
    """The step under the assumptions of --assume. Null: none were given."""

    assumptions: Annotated[list[RooflineAssumption], told("One for each.")]
    step_us: Annotated[AssumedStep, told("Time per step.", unit="")]
    tpot_us: Annotated[AssumedTokenTime, told("Time per output token.", unit="")]
    tokens_per_s: Annotated[AssumedTokenRate, told("Output of the batch.")]


class RooflineDocument(Document, tag="traceanalyzer/roofline/1"):
    """What limits each kind of work and how far it is from its roof. All figures are means per step."""

    command: ClassVar[str] = "roofline"

    phase: Annotated[Phase | None, told("Phase of the steps.", null="they are of several")]
    steps: Annotated[int, told("Steps looked at.")]
    gpu: Annotated[RooflineGpu, told("The GPU.")]
    model: Annotated[RooflineModel, told("The model.")]
    measured_us: Annotated[float, told("Kernel time per step; the rows' measured_us sum to it.", basis="measured")]
    floor_us: Annotated[
        float | None,
        told(
            "Sum of the rows' floors, redundant rows left out, no row above its measured time.",
            null="no row has a floor",
            basis="modelled",
        ),
    ]
    reachable_us: Annotated[
        float | None, told("The same under the achievable roofs.", null="likewise", basis="modelled")
    ]
    explained_share: Annotated[
        float, told("Share of the measured time in rows with a plausible floor, or known to be launch latency.")
    ]
    copies_us: Annotated[float, told("Copies and memsets besides the kernels.")]
    step_us: Annotated[float, told("First to last event of a step.")]
    period_us: Annotated[float, told("Step and the pause before it.")]
    latency_us: Annotated[float, told("What a kernel takes that does next to nothing.")]
    rows: Annotated[
        list[RooflineRow], told("Kernels of one role, and of one kind of block where kinds do different work.")
    ]
    findings: Annotated[list[Finding], told("What to act on, most worth first; the last one says what to attack.")]
    what_if: Annotated[
        RooflineWhatIf | None, told("The step under the assumptions of --assume.", null="none were given")
    ]
    basis: Annotated[list[str], told("What the whole rests on.")]
