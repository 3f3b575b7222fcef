"""What `traceanalyzer estimate` answers, field by field. Every figure is modelled unless it says otherwise."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning

ONE_TOKEN: Any = {"null": "an answer is one token"}
FLOOR: Any = {"null": "--roofline: a floor has none"}
RATIO: Any = {"unit": "ratio"}
RATIOS: Any = {"unit": "ratio, low and high"}
ERROR: Any = {"unit": "share, 1 is all"}
TOKENS: Any = {"unit": "tokens"}
RATE: Any = {"unit": "tokens/s"}


class EstimateMemory(Part):
    """Memory of the fullest GPU."""

    usable_bytes: Annotated[float | None, told("What the engine may use.", null="the GPU's memory is unknown")]
    weight_bytes: Annotated[float | None, told("Weights.", null="a part of the model is unknown")]
    workspace_bytes: Annotated[float, told("Activations, graphs and runtime.", basis="assumed")]
    kv_bytes_a_sequence: Annotated[
        float, told("KV cache and recurrent state of one sequence at full length.", unit="bytes")
    ]
    sequences: Annotated[
        int | None, told("Sequences that the cache holds, over all data-parallel ranks.", null="unknown")
    ]
    weights_fit: Annotated[bool | None, told("Whether the weights leave room for some cache.", null="unknown")]
    batch_fits: Annotated[bool | None, told("Whether the cache holds the batch.", null="unknown")]


class EstimateOp(Part):
    """All ops of one name in layers of one kind."""

    phase: Annotated[Literal["decode", "prefill"], told("Phase.")]
    op: Annotated[str, told("Name of the op.")]
    role: Annotated[str, told("Its role.")]
    kind: Annotated[str | None, told("Kind of the layers.", null="kinds are not told apart")]
    count: Annotated[int, told("How often per step.", heading="n")]
    time_us: Annotated[float, told("Time of all.")]
    share: Annotated[float, told("Of the phase's time.")]
    compute_us: Annotated[float, told("Time of the arithmetic.", heading="arithmetic")]
    memory_us: Annotated[float, told("Time of the memory accesses.")]
    latency_us: Annotated[float, told("Time of launching.")]
    communication_us: Annotated[float, told("Time of the collective.")]
    flops: Annotated[float, told("Operations of all.", unit="operations")]
    bytes: Annotated[float, told("Bytes of all.")]
    intensity: Annotated[float | None, told("Operations per byte.", null="no bytes", unit="FLOP/byte")]
    bound: Annotated[
        Literal["compute", "memory", "latency", "communication"],
        told("What most of its time goes to.", heading="limited by"),
    ]
    notes: Annotated[list[str], told("What the figures rest on.")]


class EstimateSwitch(Part):
    """An op that arithmetic limits from some batch on."""

    op: Annotated[str, told("Name of the op.")]
    kind: Annotated[str | None, told("Kind of the layers.", null="kinds are not told apart")]
    batch: Annotated[int, told("The first batch tried at which arithmetic limits it.")]
    from_: Annotated[str, told("What limits it at smaller batches.")] = msgspec.field(name="from")
    to: Annotated[str, told("What limits it from there on.")] = "compute"


class EstimateLine(Part):
    """What clients see at one batch."""

    batch: Annotated[int, told("Requests in flight.")]
    ttft_ms: Annotated[
        float, told("Mean time to the first token, waiting included, requests arriving evenly.", basis="modelled")
    ]
    ttft_range_ms: Annotated[tuple[float, float] | None, told("Error range of ttft_ms, low and high.", **FLOOR)]
    ttft_p99_ms: Annotated[float, told("99 % quantile of the time to the first token.")]
    ttft_at_once_ms: Annotated[float, told("Mean time to the first token if all requests are sent at once.")]
    tpot_ms: Annotated[
        float | None,
        told("Mean time between the tokens of a request after the first.", basis="modelled", **ONE_TOKEN),
    ]
    tpot_range_ms: Annotated[
        tuple[float, float] | None,
        told("Error range of tpot_ms, low and high.", null="an answer is one token, or --roofline"),
    ]
    tpot_p99_ms: Annotated[float | None, told("99 % quantile of tpot_ms over requests.", **ONE_TOKEN)]
    tokens_per_s: Annotated[float, told("Output over all requests.", basis="modelled", **RATE)]
    tokens_per_s_range: Annotated[
        tuple[float, float] | None, told("Error range of tokens_per_s, low and high.", **FLOOR, **RATE)
    ]
    requests_per_s: Annotated[float, told("By Little's law: requests in flight over latency.", unit="requests/s")]
    latency_ms: Annotated[float, told("Mean time of a whole request.")]
    bubble_share: Annotated[float, told("Of the time that the busiest pipeline stage waits.")]


class EstimateOnGpu(EstimateLine):
    """The estimate of a model on one kind of GPU."""

    model: Annotated[str, told("Name of the model.")]
    gpu: Annotated[str, told("Name of the GPU.")]
    layout: Annotated[str, told("Parallel layout, such as tp=2.")]
    gpus: Annotated[int, told("GPUs of the layout.")]
    isl: Annotated[int, told("Tokens of a prompt.", **TOKENS)]
    osl: Annotated[int, told("Tokens of an answer.", **TOKENS)]
    max_num_batched_tokens: Annotated[int, told("Most tokens per step.", **TOKENS)]
    max_batch: Annotated[
        int | None, told("Largest batch within --slo, else within the memory.", null="the GPU's memory is unknown")
    ]
    max_batch_limited_by: Annotated[
        Literal["ttft", "tpot", "memory", "tokens", "search"] | None, told("What limits it.", null="unknown")
    ]
    prefill_ms: Annotated[float, told("One prompt on idle GPUs, through all its chunks.")]
    decode_step_ms: Annotated[float, told("One decode step.")]
    compute_bound_share: Annotated[float, told("Of a decode step's roofline time: ops that arithmetic limits.")]
    prefill_compute_bound_share: Annotated[float, told("The same of a prefill.")]
    memory: Annotated[EstimateMemory, told("Memory of the fullest GPU.")]
    ops: Annotated[list[EstimateOp], told("Ops of a decode step at the mean context, and of a prompt's first chunk.")]
    switches: Annotated[list[EstimateSwitch], told("Ops whose limit changes as the batch grows.")]
    assumptions: Annotated[list[str], told("What the figures rest on, and how far off they may be.")]


class GpuRatios(Part):
    """Second GPU over first."""

    decode_step: Annotated[float, told("Time of a decode step.", **RATIO)]
    prefill: Annotated[float, told("Time of a prefill.", **RATIO)]
    ttft: Annotated[float, told("TTFT.", **RATIO)]
    tpot: Annotated[float | None, told("TPOT.", **ONE_TOKEN, **RATIO)]
    tokens_per_s: Annotated[float, told("Output.", **RATIO)]


class Shortcut(Part):
    """The second GPU by Amdahl's law on the share of the time that arithmetic limits."""

    compute_ratio: Annotated[float, told("Arithmetic of the second GPU over the first.", **RATIO)]
    bandwidth_ratio: Annotated[float, told("Bandwidth of the second GPU over the first.", **RATIO)]
    decode_share: Annotated[float, told("Compute-bound share of a decode step.")]
    prefill_share: Annotated[float, told("Compute-bound share of a prefill.")]
    decode_factor: Annotated[float, told("Time of a decode step, second over first.", **RATIO)]
    prefill_factor: Annotated[float, told("Time of a prefill, second over first.", **RATIO)]
    batch: Annotated[int, told("Batch on the first GPU.")]
    batch_kept: Annotated[int, told("Batch on the second with the same TPOT, time taken as proportional to the batch.")]
    tokens_per_s: Annotated[float | None, told("Output on the first GPU.", null="unknown", **RATE)]
    tokens_per_s_kept: Annotated[float | None, told("Output on the second at that batch.", null="unknown", **RATE)]
    notes: Annotated[list[str], told("What to know.")]


class LayoutAtLoad(Part):
    """A layout at one batch and link bandwidth."""

    link_gbps: Annotated[float, told("Link bandwidth, one direction.")]
    batch: Annotated[int, told("Requests in flight.")]
    requests_per_s: Annotated[float, told("Requests answered.", unit="requests/s")]
    tokens_per_s: Annotated[float, told("Output.", **RATE)]
    ttft_ms: Annotated[float, told("Mean time to the first token.")]
    itl_ms: Annotated[float | None, told("Mean time between tokens.", **ONE_TOKEN)]
    bubble_share: Annotated[float, told("Of the time that the busiest stage waits.")]


class EstimateLayout(Part):
    """A layout at every load."""

    layout: Annotated[str, told("Its name.")]
    gpus: Annotated[int, told("Its GPUs.")]
    refused: Annotated[str | None, told("Why it cannot run.", null="it can")]
    results: Annotated[list[LayoutAtLoad], told("By link and batch.")]


class EstimateLayoutRatio(Part):
    """One layout against another: lowest and highest over all links and batches."""

    base: Annotated[str, told("Layout compared with.")]
    other: Annotated[str, told("Layout.")]
    throughput: Annotated[tuple[float, float], told("Requests/s, other over base.", **RATIOS)]
    ttft_change: Annotated[tuple[float, float], told("TTFT, other over base, less 1.", **RATIOS)]
    itl_change: Annotated[tuple[float, float], told("ITL, other over base, less 1.", **RATIOS)]


class LayoutOrder(Part):
    """How layouts rank at one batch and link bandwidth."""

    link_gbps: Annotated[float, told("Link bandwidth.")]
    batch: Annotated[int, told("Batch.")]
    order: Annotated[list[str], told("Layouts, most tokens/s first.")]


class EstimateParallel(Part):
    """Layouts side by side."""

    link_gbps: Annotated[list[float], told("Link bandwidths tried.")]
    batches: Annotated[list[int], told("Batches tried.")]
    layouts: Annotated[list[EstimateLayout], told("Each layout.")]
    ratios: Annotated[list[EstimateLayoutRatio], told("Pairs of layouts over all links and batches.")]
    orders: Annotated[list[LayoutOrder], told("Order of layouts.")]
    order_depends_on_link: Annotated[bool, told("Whether the order changes with the link.")]
    notes: Annotated[list[str], told("What to know.")]


class AchievedShare(Part):
    """The share of the peaks that one class of ops reaches."""

    compute: Annotated[float, told("Of the arithmetic.", **ERROR)]
    memory: Annotated[float, told("Of the bandwidth.", **ERROR)]


class FittedLoad(Part):
    """One measured load against the fit."""

    batch: Annotated[int, told("Requests in flight.")]
    isl: Annotated[int, told("Tokens of a prompt.", **TOKENS)]
    osl: Annotated[int, told("Tokens of an answer.", **TOKENS)]
    tpot_ms: Annotated[float, told("TPOT.", basis="measured")]
    fitted_ms: Annotated[float, told("TPOT by the fit to all loads.")]
    error: Annotated[float, told("Fitted over measured, less 1.", **ERROR)]
    held_out_ms: Annotated[float | None, told("TPOT by a fit to the other loads.", null="the only load")]
    held_out_error: Annotated[float | None, told("The same over measured, less 1.", null="the only load", **ERROR)]


class EstimateCalibration(Part):
    """What was taken from measurements."""

    slowness: Annotated[
        float | None, told("Time of kernels over that with the defaults, fitted.", null="no serving results", **RATIO)
    ]
    step_ms: Annotated[float, told("Time per step beside its kernels.")]
    kernel_us: Annotated[float, told("Time per kernel beside its work.")]
    shares: Annotated[dict[str, AchievedShare], told("By class of op, achieved shares of the peaks.")]
    error: Annotated[float | None, told("Mean error of the fit.", null="no serving results", **ERROR)]
    held_out_error: Annotated[
        float | None, told("Mean error with each load left out.", null="fewer than two loads", **ERROR)
    ]
    largest_held_out_error: Annotated[float | None, told("Largest of them.", null="fewer than two loads", **ERROR)]
    points: Annotated[list[FittedLoad], told("The loads.")]
    calibrated: Annotated[list[str], told("What was taken from the measurement.")]
    not_calibrated: Annotated[list[str], told("What stays a default.")]


class EstimateEffect(Part):
    """What one change does to a step."""

    role: Annotated[str, told("Role, with its kind.", heading="work")]
    what: Annotated[str, told("What changes.", heading="becomes")]
    before_us: Annotated[float, told("Time per step before.")]
    after_us: Annotated[float, told("Time per step after.")]


class EstimatePrediction(Part):
    """The step of --trace after its hotspots got faster."""

    effects: Annotated[list[EstimateEffect], told("The changes.")]
    step_before_us: Annotated[float, told("From the step's first event to its last.", basis="measured")]
    step_after_us: Annotated[float, told("The same, less what is saved.")]
    tpot_before_ms: Annotated[
        float | None,
        told("Step and pause before it.", null="steps do not give each sequence one token", basis="measured"),
    ]
    tpot_after_ms: Annotated[
        float | None, told("The same, less what is saved.", null="steps do not give each sequence one token")
    ]
    tokens_per_s_before: Annotated[float | None, told("Output over all sequences.", null="unknown", **RATE)]
    tokens_per_s_after: Annotated[float | None, told("Output predicted.", null="unknown", **RATE)]
    basis: Annotated[list[str], told("What it rests on.")]


class EstimateDocument(EstimateOnGpu, Document, tag="traceanalyzer/estimate/1"):
    """Modelled, not measured. The top level is the estimate for the first batch."""

    command: ClassVar[str] = "estimate"

    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
    batches: Annotated[list[EstimateLine], told("The same figures for every batch of --batch.")]
    second_gpu: Annotated[EstimateOnGpu | None, told("The estimate on --compare-gpu.", null="no --compare-gpu")]
    ratios: Annotated[GpuRatios | None, told("Second GPU over first.", null="no --compare-gpu")]
    shortcut: Annotated[Shortcut | None, told("The shortcut by Amdahl's law.", null="no --compare-gpu")]
    parallel: Annotated[EstimateParallel | None, told("Layouts side by side.", null="no --compare-parallel")]
    calibration: Annotated[
        EstimateCalibration | None,
        told("What was taken from measurements.", null="neither --calibrate nor --calibrate-serving"),
    ]
    prediction: Annotated[EstimatePrediction | None, told("The step of --trace after a change.", null="no --trace")]
