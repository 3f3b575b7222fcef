"""One estimate: what clients see, where the time of a step goes, what fits, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from traceanalyzer.commands.estimate.calibrate import TPOT_RANGE, Calibration
from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Chunk, Deployment, EngineSettings, check_lengths
from traceanalyzer.commands.estimate.efficiencies import ROOFLINE
from traceanalyzer.commands.estimate.memory_fit import layout_name, memory
from traceanalyzer.commands.estimate.result import EstimateOnGpu, EstimateSwitch
from traceanalyzer.commands.estimate.schedule import Served, Traffic, burst, steady
from traceanalyzer.commands.estimate.slo import LargestBatch, Slo, largest_batch
from traceanalyzer.commands.estimate.step_time import OpTime, StepTimes, op_sums, op_times, total_ns
from traceanalyzer.declare import part_of

FLOOR_BASIS = "no error range: this is a floor, and engines are 1.3 to 5 times as slow"

BATCHES = tuple(2**i for i in range(13))
"""Batches at which to look for what limits an op, and those of the plot."""

TTFT_LOW = 0.85
"""Lower end of the range of TTFT: measured mean TTFT over the estimate for requests that arrive evenly, at minimum over
docs/data/estimate_measured.csv. The upper end is the estimate for requests that are all sent at once."""

TPOT_BASIS = (
    "error range: TPOT measured on B200, H200, H100, A100, MI355X, MI300X and Radeon 8060S (gpt-oss-20b and 120b, "
    "Llama-3.1-8B, Llama-2-70B; 1 to 8 GPUs) was 0.65 to 1.75 times such an estimate"
)
TTFT_BASIS = (
    "error range of TTFT: from 0.85 times the estimate for requests that arrive evenly to the mean if all are sent at "
    "once; measured means lie in between"
)
WEAK = (
    "least certain for MoE models at small batch (expert kernels reach 0.27 to 0.86 of peak bandwidth, depending on "
    "their tiles), for TTFT under bursts, and for prompts of MoE models on Blackwell"
)


@dataclass(frozen=True)
class DeploymentEstimate:
    """An estimate of a deployment under one load.

    Attributes:
        deployment: the model on its GPUs.
        served: what clients see whose requests arrive evenly; times in ns.
        decode: ops of a decode step at the mean context, of one data-parallel rank.
        prefill: ops of the first chunk of one prompt.
        step_ns: time of one decode step.
        prefill_ns: time of one prompt on idle GPUs, through all its chunks.
        largest: the largest batch within limits; None where none were given.
        answer: what the document says of it.
    """

    deployment: Deployment
    served: Served
    decode: tuple[OpTime, ...]
    prefill: tuple[OpTime, ...]
    step_ns: float
    prefill_ns: float
    largest: LargestBatch | None
    answer: EstimateOnGpu


def estimate(
    deployment: Deployment,
    isl: int,
    osl: int,
    batch: int | None = None,
    *,
    slo: Slo | None = None,
    engine: EngineSettings = DEFAULT_ENGINE,
    calibration: Calibration | None = None,
) -> DeploymentEstimate:
    """Estimate TTFT, TPOT and tokens/s of a deployment for prompts of ``isl`` and answers of ``osl`` tokens.

    The default batch is the largest within ``slo``, or 1. ``calibration`` gave the efficiencies, if it is not None.
    Raises EstimateError for an absurd length or more sequences than tokens in a step, HardwareError for an unknown peak
    that the model needs, ModelError for a layout that does not fit the model.
    """
    check_lengths(isl, osl, 1 if batch is None else batch)
    budget, parallel, times = engine.budget, deployment.parallel, StepTimes(deployment)
    fit = memory(deployment, isl + osl, engine.utilisation)
    largest = largest_batch(times, isl, osl, slo, budget, fit.sequences) if slo else None
    if batch is None:
        batch = max(largest.batch, 1) if largest else 1
    served = steady(times, Traffic(isl, osl, batch), budget)
    at_once_ns = burst(times, Traffic(isl, osl, batch), budget).ttft_ns
    context, chunks = mean_context(isl, osl), prompt_chunks(isl, budget)
    on_rank = max(-(-batch // parallel.dp), 1)
    decode = op_times(deployment, max(-(-on_rank // parallel.pp), 1), context)
    prefill = op_times(deployment, 0, 0, chunks[:1])
    step_ns = times.round(batch, context).total_ns
    prefill_ns = sum(times.round(0, 0, [chunk]).total_ns for chunk in chunks)
    floor = replace(deployment, efficiencies=ROOFLINE)
    tpot, ttft, tokens = _ranges(deployment, served, at_once_ns, calibration)
    known_batch = fit.sequences if largest is None else largest.batch
    answer = part_of(
        EstimateOnGpu,
        served,
        model=deployment.architecture.name,
        gpu=deployment.gpu.name,
        layout=layout_name(parallel),
        gpus=parallel.gpus,
        isl=isl,
        osl=osl,
        batch=batch,
        max_num_batched_tokens=budget,
        max_batch=known_batch,
        max_batch_limited_by=largest.limited_by if largest else "memory" if known_batch is not None else None,
        ttft_range_ms=ttft,
        ttft_at_once_ms=at_once_ns / 1e6,
        tpot_range_ms=tpot,
        tokens_per_s_range=tokens,
        prefill_ms=prefill_ns / 1e6,
        decode_step_ms=step_ns / 1e6,
        compute_bound_share=roofline_compute_share(op_times(floor, on_rank, context)),
        prefill_compute_bound_share=roofline_compute_share(op_times(floor, 0, 0, chunks[:1])),
        memory=structs.replace(fit, batch_fits=None if fit.sequences is None else fit.sequences >= batch),
        ops=[*op_sums("decode", decode), *op_sums("prefill", prefill)],
        switches=list(switches(deployment, context)),
        assumptions=assumptions(deployment, calibration, budget, isl + osl),
    )
    return DeploymentEstimate(deployment, served, decode, prefill, step_ns, prefill_ns, largest, answer)


def roofline_compute_share(times: Sequence[OpTime]) -> float:
    """Return the share of the time in ops that arithmetic limits, without quantising and sampling, as is published."""
    entries = [entry for entry in times if entry.op.role not in ("quantize", "sampler")]
    whole = total_ns(entries)
    return total_ns(entry for entry in entries if entry.bound == "compute") / whole if whole else 0.0


def prompt_chunks(isl: int, budget: int) -> list[Chunk]:
    """Return the chunks in which idle GPUs read a prompt."""
    return [Chunk(min(budget, isl - past), past, past + budget >= isl) for past in range(0, isl, budget)]


def mean_context(isl: int, osl: int) -> float:
    """Return the mean context of a sequence while it generates: the prompt and half the answer."""
    return isl + osl / 2


def switches(deployment: Deployment, context: float, batches: Sequence[int] = BATCHES) -> tuple[EstimateSwitch, ...]:
    """Return the ops that arithmetic limits from some batch on, in the order of the model."""
    before: dict[tuple[str, str | None], str] = {}
    first: dict[tuple[str, str | None], EstimateSwitch] = {}
    for batch in batches:
        for entry in op_times(deployment, batch, context):
            key = (entry.op.name, entry.op.kind)
            if entry.bound == "compute" and key in before and key not in first:
                first[key] = EstimateSwitch(op=key[0], kind=key[1], batch=batch, from_=before[key])
            before[key] = entry.bound
    return tuple(first[key] for key in before if key in first)


def step_over_batches(
    deployment: Deployment, context: float, batches: Sequence[int] = BATCHES
) -> list[dict[str, float]]:
    """Return for each batch the time of a decode step by what limits it, in ns, and the batch as ``batch``."""
    rows = []
    for batch in batches:
        row: dict[str, float] = {"batch": batch, "host": deployment.efficiencies.step_ns}
        for entry in op_times(deployment, batch, context):
            row[entry.bound] = row.get(entry.bound, 0.0) + entry.total_ns
        rows.append(row)
    return rows


Range = tuple[float, float]
"""Lowest and highest value that a figure may really have."""


def _ranges(
    deployment: Deployment, served: Served, at_once_ns: float, calibration: Calibration | None
) -> tuple[Range | None, Range | None, Range | None]:
    """Return the error ranges of TPOT and TTFT in ms, and of tokens/s; a floor has none."""
    if deployment.efficiencies is ROOFLINE:
        return None, None, None
    low, high = _tpot_range(calibration)
    tpot = None if served.tpot_ns is None else (served.tpot_ns * low / 1e6, served.tpot_ns * high / 1e6)
    # Without TPOT, what slows requests down is their waiting.
    slower = high if served.tpot_ns is not None else max(at_once_ns / served.ttft_ns, 1.0)
    ttft = (served.ttft_ns * TTFT_LOW / 1e6, max(at_once_ns, served.ttft_ns) / 1e6)
    return tpot, ttft, (served.tokens_per_s / slower, served.tokens_per_s / low)


def _tpot_range(calibration: Calibration | None) -> Range:
    """Return the range of measured TPOT over the estimate; it always includes every load of the fit."""
    if calibration is None:
        return TPOT_RANGE
    ratios = (*(calibration.tpot_range or TPOT_RANGE), *calibration.in_sample_ratios)
    return min(ratios), max(ratios)


def assumptions(deployment: Deployment, calibration: Calibration | None, budget: int, length: int) -> list[str]:
    """Say what the figures rest on, and how far off such estimates were."""
    architecture, parallel = deployment.architecture, deployment.parallel
    longest = architecture.max_positions
    lines = []
    if longest and length > longest:
        lines.append(f"prompt and answer take {length:,} tokens, more than the model's {longest:,} positions")
    lines += [
        "time of an op = max(FLOP / (peak x share), bytes / (bandwidth x share)) + launch latency; a step is their sum",
        *(line for line in deployment.efficiencies.basis if architecture.moe or not line.startswith("experts:")),
        f"chunked prefill with {budget:,} tokens per step, decodes first; requests arrive evenly; no prefix caching",
    ]
    if architecture.moe:
        skew = deployment.routing.skew
        lines.append(f"experts follow a Zipf law of exponent {skew:g}" if skew else "uniform routing to experts")
    if deployment.graphs:
        lines.append("decode steps padded to the batch sizes for which vLLM captures CUDA graphs")
    if parallel.gpus > 1:
        lines.append(f"layout {layout_name(parallel)}" + (f": {deployment.link.basis}" if deployment.link else ""))
    if parallel.ep > 1 and parallel.dp > 1:
        lines.append("data-parallel ranks in lock-step, each as slow as the busiest")
    lines += [f"GPU figures: confidence {deployment.gpu.confidence} ({deployment.gpu.source})"]
    lines += architecture.notes
    return lines + (_error_basis(calibration) if deployment.efficiencies is not ROOFLINE else [FLOOR_BASIS])


def _error_basis(calibration: Calibration | None) -> list[str]:
    if calibration is None:
        return [TPOT_BASIS, TTFT_BASIS, f"no calibration: {WEAK}"]
    if calibration.tpot_range is None:
        beyond = [ratio for ratio in calibration.in_sample_ratios if not TPOT_RANGE[0] <= ratio <= TPOT_RANGE[1]]
        told = [f"the range includes a fitted load: {ratio:.2f} times the estimate" for ratio in beyond]
        return [*told, TPOT_BASIS, TTFT_BASIS]
    return ["error range of TPOT: the errors of loads left out of the fit, one at a time", TTFT_BASIS]
