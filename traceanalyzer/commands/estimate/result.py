"""What `traceanalyzer estimate` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class EstimateMemory(Part):
    """Memory of the fullest GPU."""

    usable_bytes: Annotated[float | None, told("What the engine may use.", null="the GPU's memory is not known")]
    weight_bytes: Annotated[float | None, told("Weights.", null="a part of the model is not known")]
    workspace_bytes: Annotated[float, told("Activations, graphs and runtime; assumed.")]
    kv_bytes_a_sequence: Annotated[
        float, told("KV cache and recurrent state of one sequence at full length.", unit="bytes")
    ]
    sequences: Annotated[int | None, told("How many the cache holds, over all data-parallel ranks.", null="not known")]
    weights_fit: Annotated[bool | None, told("Whether the weights leave room for some cache.", null="not known")]
    batch_fits: Annotated[bool | None, told("Whether the cache holds the batch.", null="not known")]


class EstimateOp(Part):
    """TODO"""

    phase: Annotated[Literal["decode", "prefill"], told("Phase.")]
    op: Annotated[str, told("Name of the op.")]
    role: Annotated[str, told("Its role.")]
    kind: Annotated[str | None, told("Kind of the layers.", null="kinds are not told apart")]
    count: Annotated[int, told("How often in a step.")]
    time_us: Annotated[float, told("Time of all.")]
    share: Annotated[float, told("Of the phase's time.")]
    compute_us: Annotated[float, told("What the arithmetic takes.")]
    memory_us: Annotated[float, told("What the bytes take.")]
    latency_us: Annotated[float, told("What launching takes.")]
    communication_us: Annotated[float, told("What a collective takes.")]
    flops: Annotated[float, told("Operations of all.", unit="operations")]
    bytes: Annotated[float, told("Bytes of all.")]
    intensity: Annotated[float | None, told("Operations a byte.", null="no bytes", unit="FLOP/byte")]
    bound: Annotated[Literal["compute", "memory", "latency", "communication"], told("What most of its time goes to.")]
    notes: Annotated[list[str], told("What the figures rest on.")]


class EstimateSwitch(Part):
    """TODO"""

    op: Annotated[str, told("Name of the op.")]
    kind: Annotated[str | None, told("Kind of the layers.", null="kinds are not told apart")]
    batch: Annotated[int, told("Batch from which on it changes.")]
    from_: Annotated[str, told("Bound before.")] = msgspec.field(name="from")
    to: Annotated[str, told("Bound from there on.")]


class EstimateLine(Part):
    """TODO"""

    batch: Annotated[int, told("Requests in flight.")]
    ttft_ms: Annotated[float, told("Mean time to the first token, waiting included, requests arriving evenly.")]
    ttft_range_ms: Annotated[
        tuple[float, float] | None, told("Error range of ttft_ms, low and high.", null="--roofline: a floor has none")
    ]
    ttft_p99_ms: Annotated[float, told("Its 99 % quantile over requests.")]
    ttft_at_once_ms: Annotated[float, told("Mean time to the first token if all requests are sent at once.")]
    tpot_ms: Annotated[
        float | None, told("Mean time between the tokens of a request after the first.", null="an answer is one token")
    ]
    tpot_range_ms: Annotated[
        tuple[float, float] | None,
        told("Error range of tpot_ms, low and high.", null="an answer is one token, or --roofline"),
    ]
    tpot_p99_ms: Annotated[float | None, told("Its 99 % quantile over requests.", null="an answer is one token")]
    tokens_per_s: Annotated[float, told("Output over all requests.", unit="tokens/s")]
    tokens_per_s_range: Annotated[
        tuple[float, float] | None,
        told("Error range of tokens_per_s, low and high.", null="--roofline: a floor has none", unit="tokens/s"),
    ]
    requests_per_s: Annotated[float, told("By Little's law: requests in flight over latency.", unit="requests/s")]
    latency_ms: Annotated[float, told("Mean time of a whole request.")]
    bubble_share: Annotated[float, told("Of the time that the busiest pipeline stage waits.")]


class EstimateSecondGpu(Part):
    """The estimate on --compare-gpu. Null: no --compare-gpu."""

    model: Annotated[str, told("Name of the model.")]
    gpu: Annotated[str, told("Name of the GPU.")]
    layout: Annotated[str, told("Parallel layout, such as tp=2.")]
    gpus: Annotated[int, told("GPUs of the layout.")]
    isl: Annotated[int, told("Tokens of a prompt.", unit="tokens")]
    osl: Annotated[int, told("Tokens of an answer.", unit="tokens")]
    max_num_batched_tokens: Annotated[int, told("Tokens of a step at most.", unit="tokens")]
    batch: Annotated[int, told("")]
    ttft_ms: Annotated[float, told("", unit="")]
    ttft_range_ms: Annotated[tuple[float, float] | None, told("", unit="")]
    ttft_p99_ms: Annotated[float, told("", unit="")]
    ttft_at_once_ms: Annotated[float, told("", unit="")]
    tpot_ms: Annotated[float | None, told("", unit="")]
    tpot_range_ms: Annotated[tuple[float, float] | None, told("", unit="")]
    tpot_p99_ms: Annotated[float | None, told("", unit="")]
    tokens_per_s: Annotated[float, told("")]
    tokens_per_s_range: Annotated[tuple[float, float] | None, told("")]
    requests_per_s: Annotated[float, told("")]
    latency_ms: Annotated[float, told("", unit="")]
    bubble_share: Annotated[float, told("", unit="")]
    max_batch: Annotated[
        int | None, told("Largest batch within --slo, else within the memory.", null="the GPU's memory is not known")
    ]
    max_batch_limited_by: Annotated[
        Literal["ttft", "tpot", "memory", "tokens", "search"] | None, told("What limits it.", null="not known")
    ]
    prefill_ms: Annotated[float, told("One prompt on idle GPUs, through all its chunks.")]
    decode_step_ms: Annotated[float, told("One decode step.")]
    compute_bound_share: Annotated[float, told("Of a decode step's roofline time: in ops that arithmetic bounds.")]
    prefill_compute_bound_share: Annotated[float, told("The same of a prefill.")]
    memory: Annotated[EstimateMemory, told("Memory of the fullest GPU.")]
    ops: Annotated[list[EstimateOp], told("Ops of a decode step at the mean context, and of a prompt's first chunk.")]
    switches: Annotated[list[EstimateSwitch], told("Ops whose bound changes as the batch grows.")]
    assumptions: Annotated[list[str], told("What the figures rest on, and how far off they may be.")]


class EstimateRatio(Part):
    """Second GPU over first. Null: no --compare-gpu."""

    decode_step: Annotated[float, told("Time of a decode step.", unit="ratio")]
    prefill: Annotated[float, told("Time of a prefill.", unit="ratio")]
    ttft: Annotated[float, told("TTFT.", unit="ratio")]
    tpot: Annotated[float | None, told("TPOT.", null="an answer is one token", unit="ratio")]
    tokens_per_s: Annotated[float, told("Output.", unit="ratio")]


class EstimateShortcut(Part):
    """The shortcut by Amdahl's law. Null: no --compare-gpu."""

    compute_ratio: Annotated[float, told("Arithmetic of the second GPU over the first.", unit="ratio")]
    bandwidth_ratio: Annotated[float, told("Bandwidth of the second GPU over the first.", unit="ratio")]
    decode_share: Annotated[float, told("Compute-bound share of a decode step.")]
    prefill_share: Annotated[float, told("Compute-bound share of a prefill.")]
    decode_factor: Annotated[float, told("Time of a decode step, second over first.", unit="ratio")]
    prefill_factor: Annotated[float, told("Time of a prefill, second over first.", unit="ratio")]
    batch: Annotated[int, told("Batch on the first GPU.")]
    batch_kept: Annotated[int, told("Batch on the second with the same TPOT.")]
    tokens_per_s: Annotated[float | None, told("Output on the first GPU.", null="not known", unit="tokens/s")]
    tokens_per_s_kept: Annotated[
        float | None, told("Output on the second at that batch.", null="not known", unit="tokens/s")
    ]
    notes: Annotated[list[str], told("What to know.")]


class EstimateResult(Part):
    """TODO"""

    link_gbps: Annotated[float, told("Link bandwidth, one direction.")]
    batch: Annotated[int, told("Requests in flight.")]
    requests_per_s: Annotated[float, told("Requests answered.", unit="requests/s")]
    tokens_per_s: Annotated[float, told("Output.", unit="tokens/s")]
    ttft_ms: Annotated[float, told("Mean time to the first token.")]
    itl_ms: Annotated[float | None, told("Mean time between tokens.", null="an answer is one token")]
    bubble_share: Annotated[float, told("Of the time that the busiest stage waits.")]


class EstimateLayout(Part):
    """TODO"""

    layout: Annotated[str, told("Its name.")]
    gpus: Annotated[int, told("Its GPUs.")]
    refused: Annotated[str | None, told("Why it cannot be.", null="it can")]
    results: Annotated[list[EstimateResult], told("By link and batch.")]


class EstimateRatio2(Part):
    """TODO"""

    base: Annotated[str, told("Layout compared with.")]
    other: Annotated[str, told("Layout.")]
    throughput: Annotated[tuple[float, float], told("Requests/s, other over base.", unit="ratio, low and high")]
    ttft_change: Annotated[tuple[float, float], told("TTFT, other over base.", unit="ratio, low and high")]
    itl_change: Annotated[tuple[float, float], told("ITL, other over base.", unit="ratio, low and high")]


class EstimateOrder(Part):
    """TODO"""

    link_gbps: Annotated[float, told("Link bandwidth.")]
    batch: Annotated[int, told("Batch.")]
    order: Annotated[list[str], told("Layouts, most requests/s first.")]


class EstimateParallel(Part):
    """Layouts side by side. Null: no --compare-parallel."""

    link_gbps: Annotated[list[float], told("Link bandwidths tried.")]
    batches: Annotated[list[int], told("Batches tried.")]
    layouts: Annotated[list[EstimateLayout], told("Each layout.")]
    ratios: Annotated[list[EstimateRatio2], told("Pairs of layouts over all links and batches.")]
    orders: Annotated[list[EstimateOrder], told("Order of layouts.")]
    order_depends_on_link: Annotated[bool, told("Whether the order changes with the link.")]
    notes: Annotated[list[str], told("What to know.")]


class EstimateShare(Part):
    """TODO"""

    compute: Annotated[float, told("Of the arithmetic.", unit="share, 1 is all")]
    memory: Annotated[float, told("Of the bandwidth.", unit="share, 1 is all")]


class EstimatePoint(Part):
    """TODO"""

    batch: Annotated[int, told("Requests in flight.")]
    isl: Annotated[int, told("Tokens of a prompt.", unit="tokens")]
    osl: Annotated[int, told("Tokens of an answer.", unit="tokens")]
    tpot_ms: Annotated[float, told("Measured.")]
    fitted_ms: Annotated[float, told("Fitted.")]
    error: Annotated[float, told("Fitted over measured, less 1.", unit="share, 1 is all")]
    held_out_ms: Annotated[float | None, told("Estimated by a fit without it.", null="the only load")]
    held_out_error: Annotated[
        float | None, told("The same over measured, less 1.", null="the only load", unit="share, 1 is all")
    ]


class EstimateCalibration(Part):
    """What was taken from measurements. Null: neither --calibrate nor --calibrate-serving."""

    slowness: Annotated[
        float | None, told("Kernels against the defaults, as fitted.", null="no serving results", unit="ratio")
    ]
    step_ms: Annotated[float, told("Time of a step beside its kernels.")]
    kernel_us: Annotated[float, told("Time of a kernel beside its work.")]
    shares: Annotated[dict[str, EstimateShare], told("By class of op, achieved shares of the peaks.")]
    error: Annotated[float | None, told("Mean error of the fit.", null="no serving results", unit="share, 1 is all")]
    held_out_error: Annotated[
        float | None, told("Mean error with each load left out.", null="fewer than two loads", unit="share, 1 is all")
    ]
    largest_held_out_error: Annotated[
        float | None, told("Largest of them.", null="fewer than two loads", unit="share, 1 is all")
    ]
    points: Annotated[list[EstimatePoint], told("The loads.")]
    calibrated: Annotated[list[str], told("What was taken from the measurement.")]
    not_calibrated: Annotated[list[str], told("What stays a default.")]


class EstimateEffect(Part):
    """TODO"""

    role: Annotated[str, told("Role, with its kind.")]
    what: Annotated[str, told("What changes.")]
    before_us: Annotated[float, told("Time a step before.")]
    after_us: Annotated[float, told("Time a step after.")]


class EstimatePrediction(Part):
    """The step of --trace after a change. Null: no --trace."""

    effects: Annotated[list[EstimateEffect], told("The changes.")]
    step_before_us: Annotated[float, told("Step measured.")]
    step_after_us: Annotated[float, told("Step predicted.")]
    tpot_before_ms: Annotated[float | None, told("TPOT measured.", null="steps do not give each sequence one token")]
    tpot_after_ms: Annotated[float | None, told("TPOT predicted.", null="likewise")]
    tokens_per_s_before: Annotated[float | None, told("Output measured.", null="not known", unit="tokens/s")]
    tokens_per_s_after: Annotated[float | None, told("Output predicted.", null="not known", unit="tokens/s")]
    basis: Annotated[list[str], told("What it rests on.")]


class EstimateDocument(Document, tag="traceanalyzer/estimate/1"):
    """Modelled, not measured. The top level is the estimate for the first batch."""

    command: ClassVar[str] = "estimate"

    model: Annotated[str, told("Name of the model.")]
    gpu: Annotated[str, told("Name of the GPU.")]
    layout: Annotated[str, told("Parallel layout, such as tp=2.")]
    gpus: Annotated[int, told("GPUs of the layout.")]
    isl: Annotated[int, told("Tokens of a prompt.", unit="tokens")]
    osl: Annotated[int, told("Tokens of an answer.", unit="tokens")]
    max_num_batched_tokens: Annotated[int, told("Tokens of a step at most.", unit="tokens")]
    batch: Annotated[int, told("Requests in flight.")]
    ttft_ms: Annotated[float, told("Mean time to the first token, waiting included, requests arriving evenly.")]
    ttft_range_ms: Annotated[
        tuple[float, float] | None, told("Error range of ttft_ms, low and high.", null="--roofline: a floor has none")
    ]
    ttft_p99_ms: Annotated[float, told("Its 99 % quantile over requests.")]
    ttft_at_once_ms: Annotated[float, told("Mean time to the first token if all requests are sent at once.")]
    tpot_ms: Annotated[
        float | None, told("Mean time between the tokens of a request after the first.", null="an answer is one token")
    ]
    tpot_range_ms: Annotated[
        tuple[float, float] | None,
        told("Error range of tpot_ms, low and high.", null="an answer is one token, or --roofline"),
    ]
    tpot_p99_ms: Annotated[float | None, told("Its 99 % quantile over requests.", null="an answer is one token")]
    tokens_per_s: Annotated[float, told("Output over all requests.", unit="tokens/s")]
    tokens_per_s_range: Annotated[
        tuple[float, float] | None,
        told("Error range of tokens_per_s, low and high.", null="--roofline: a floor has none", unit="tokens/s"),
    ]
    requests_per_s: Annotated[float, told("By Little's law: requests in flight over latency.", unit="requests/s")]
    latency_ms: Annotated[float, told("Mean time of a whole request.")]
    bubble_share: Annotated[float, told("Of the time that the busiest pipeline stage waits.")]
    max_batch: Annotated[
        int | None, told("Largest batch within --slo, else within the memory.", null="the GPU's memory is not known")
    ]
    max_batch_limited_by: Annotated[
        Literal["ttft", "tpot", "memory", "tokens", "search"] | None, told("What limits it.", null="not known")
    ]
    prefill_ms: Annotated[float, told("One prompt on idle GPUs, through all its chunks.")]
    decode_step_ms: Annotated[float, told("One decode step.")]
    compute_bound_share: Annotated[float, told("Of a decode step's roofline time: in ops that arithmetic bounds.")]
    prefill_compute_bound_share: Annotated[float, told("The same of a prefill.")]
    memory: Annotated[EstimateMemory, told("Memory of the fullest GPU.")]
    ops: Annotated[list[EstimateOp], told("Ops of a decode step at the mean context, and of a prompt's first chunk.")]
    switches: Annotated[list[EstimateSwitch], told("Ops whose bound changes as the batch grows.")]
    assumptions: Annotated[list[str], told("What the figures rest on, and how far off they may be.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
    batches: Annotated[list[EstimateLine], told("The same figures for every batch of --batch.")]
    second_gpu: Annotated[EstimateSecondGpu | None, told("The estimate on --compare-gpu.", null="no --compare-gpu")]
    ratios: Annotated[EstimateRatio | None, told("Second GPU over first.", null="no --compare-gpu")]
    shortcut: Annotated[EstimateShortcut | None, told("The shortcut by Amdahl's law.", null="no --compare-gpu")]
    parallel: Annotated[EstimateParallel | None, told("Layouts side by side.", null="no --compare-parallel")]
    calibration: Annotated[
        EstimateCalibration | None,
        told("What was taken from measurements.", null="neither --calibrate nor --calibrate-serving"),
    ]
    prediction: Annotated[EstimatePrediction | None, told("The step of --trace after a change.", null="no --trace")]
