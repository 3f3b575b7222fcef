"""One estimate: what clients see, where the time of a step goes, what fits, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.calibrate import Calibration
from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Chunk, Deployment, EngineSettings, check_lengths
from traceanalyzer.commands.estimate.efficiencies import ROOFLINE
from traceanalyzer.commands.estimate.memory_fit import Memory, layout_name, memory
from traceanalyzer.commands.estimate.result import EstimateSwitch
from traceanalyzer.commands.estimate.schedule import Served, Traffic, burst, steady
from traceanalyzer.commands.estimate.slo import LargestBatch, Slo, largest_batch
from traceanalyzer.commands.estimate.step_time import StepTimes, op_times
from traceanalyzer.commands.estimate.times import OpTime, compute_bound_share
from traceanalyzer.commands.estimate.validation import TPOT_BASIS, TPOT_RANGE, TTFT_BASIS, TTFT_LOW, WEAK

FLOOR_BASIS = "no error range: this is a floor, which engines miss by a factor of 1.3 to 5"

BATCHES = tuple(2**i for i in range(13))
"""Batches at which ops are looked at for what limits them, and those of the plot."""


@dataclass(frozen=True)
class ErrorRange:
    """What a figure may really be: lowest and highest, by how far such estimates were off."""

    low: float
    high: float


@dataclass(frozen=True)
class DeploymentEstimate:
    """An estimate of a deployment under one traffic. Times in ns.

    Attributes:
        deployment: the model on its GPUs.
        traffic: prompts, answers and requests in flight.
        budget: max_num_batched_tokens.
        served: what clients see whose requests arrive evenly.
        at_once_ttft_ns: mean time to the first token if all requests are sent at once.
        decode: ops of a decode step at the mean context, of one data-parallel rank.
        prefill: ops of the first chunk of one prompt.
        prefill_ns: one prompt on idle GPUs, through all its chunks.
        step_ns: one decode step.
        decode_compute_share: share of the decode step's roofline time in ops that arithmetic limits.
        prefill_compute_share: the same of the prefill.
        memory: weights and cache.
        largest: the largest batch within limits; None where none were given.
        switches: ops whose limit changes from memory to arithmetic as the batch grows.
        tpot: error range of TPOT; None where answers are one token, and for a floor, which has none.
        ttft: error range of TTFT; None for a floor.
        tokens: error range of tokens/s; None for a floor.
        assumptions: what the figures rest on, and how far off they may be.
    """

    deployment: Deployment
    traffic: Traffic
    budget: int
    served: Served
    at_once_ttft_ns: float
    decode: tuple[OpTime, ...]
    prefill: tuple[OpTime, ...]
    prefill_ns: float
    step_ns: float
    decode_compute_share: float
    prefill_compute_share: float
    memory: Memory
    largest: LargestBatch | None
    switches: tuple[EstimateSwitch, ...]
    tpot: ErrorRange | None
    ttft: ErrorRange | None
    tokens: ErrorRange | None
    assumptions: tuple[str, ...]


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
    """DeploymentEstimate TTFT, TPOT and tokens/s of a deployment.

    Args:
        deployment: the model on its GPUs.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        batch: requests in flight; by default the largest within ``slo``, or 1.
        slo: limits that the largest batch is searched for.
        engine: tokens per step, and memory that may be used.
        calibration: where the deployment's efficiencies come from, if not from the defaults.

    Raises:
        EstimateError: a length is absurd, or not even one sequence keeps the limits and none was asked for.
        HardwareError: a peak that the model needs is unknown.
        ModelError: the layout does not fit the model.
    """
    check_lengths(isl, osl, 1 if batch is None else batch)
    budget, times = engine.budget, StepTimes(deployment)
    fit = memory(deployment, isl + osl, engine.utilisation)
    largest = largest_batch(times, isl, osl, slo, budget, fit.sequences) if slo else None
    if batch is None:
        batch = max(largest.batch, 1) if largest else 1
    traffic = Traffic(isl, osl, batch)
    served = steady(times, traffic, budget)
    at_once = burst(times, traffic, budget).ttft_ns
    context, chunks = mean_context(isl, osl), prompt_chunks(isl, budget)
    on_rank = max(-(-batch // deployment.parallel.dp), 1)
    group = max(-(-on_rank // deployment.parallel.pp), 1)
    floor = replace(deployment, efficiencies=ROOFLINE)
    tpot, ttft, tokens = _ranges(deployment, served, at_once, calibration)
    return DeploymentEstimate(
        deployment=deployment,
        traffic=traffic,
        budget=budget,
        served=served,
        at_once_ttft_ns=at_once,
        decode=op_times(deployment, group, context),
        prefill=op_times(deployment, 0, 0, chunks[:1]),
        prefill_ns=sum(times.round(0, 0, [chunk]).total_ns for chunk in chunks),
        step_ns=times.round(batch, context).total_ns,
        decode_compute_share=roofline_compute_share(op_times(floor, on_rank, context)),
        prefill_compute_share=roofline_compute_share(op_times(floor, 0, 0, chunks[:1])),
        memory=fit,
        largest=largest,
        switches=switches(deployment, context),
        tpot=tpot,
        ttft=ttft,
        tokens=tokens,
        assumptions=tuple(assumptions(deployment, calibration, budget, isl + osl)),
    )


def roofline_compute_share(times: Sequence[OpTime]) -> float:
    """Return the compute-bound share of a step as such shares are published: quantising and sampling left out."""
    return compute_bound_share(entry for entry in times if entry.op.role not in ("quantize", "sampler"))


def prompt_chunks(isl: int, budget: int) -> list[Chunk]:
    """Return the chunks that a prompt is read in on idle GPUs."""
    return [Chunk(min(budget, isl - past), past, past + budget >= isl) for past in range(0, isl, budget)]


def mean_context(isl: int, osl: int) -> float:
    """Return the mean context of a sequence while it generates: the prompt and half the answer."""
    return isl + osl / 2


def _too_long(asked: int, longest: int | None) -> list[str]:
    if not longest or asked <= longest:
        return []
    return [f"prompt and answer take {asked:,} tokens, more than the model's {longest:,} positions"]


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
    """Return, for each batch, the time of a decode step by what limits it, in ns, and under ``batch`` the batch."""
    rows = []
    for batch in batches:
        row: dict[str, float] = {"batch": batch, "host": deployment.efficiencies.step_ns}
        for entry in op_times(deployment, batch, context):
            row[entry.bound] = row.get(entry.bound, 0.0) + entry.total_ns
        rows.append(row)
    return rows


def _ranges(
    deployment: Deployment, served: Served, at_once_ns: float, calibration: Calibration | None
) -> tuple[ErrorRange | None, ErrorRange | None, ErrorRange | None]:
    """Return the ranges of TPOT, TTFT and tokens/s."""
    if deployment.efficiencies is ROOFLINE:
        return None, None, None
    low, high = _tpot_range(calibration)
    tpot = ErrorRange(served.tpot_ns * low, served.tpot_ns * high) if served.tpot_ns is not None else None
    slower = high if served.tpot_ns is not None else max(at_once_ns / served.ttft_ns, 1.0)
    ttft = ErrorRange(served.ttft_ns * TTFT_LOW, max(at_once_ns, served.ttft_ns))
    return tpot, ttft, ErrorRange(served.tokens_per_s / slower, served.tokens_per_s / low)


def _tpot_range(calibration: Calibration | None) -> tuple[float, float]:
    """Return how far measured TPOT may lie from the estimate; never closer than what was fitted to lies itself."""
    if calibration is None:
        return TPOT_RANGE
    ratios = (*(calibration.tpot_range or TPOT_RANGE), *calibration.in_sample_ratios)
    return min(ratios), max(ratios)


def assumptions(deployment: Deployment, calibration: Calibration | None, budget: int, length: int) -> list[str]:
    """Say what the figures rest on, and how far off such estimates were."""
    architecture, parallel = deployment.architecture, deployment.parallel
    lines = [
        *_too_long(length, architecture.max_positions),
        "T of an op = max(FLOP / (peak x share), bytes / (bandwidth x share)) + launching; a step is their sum",
        *(line for line in deployment.efficiencies.basis if architecture.moe or not line.startswith("experts:")),
        f"chunked prefill with {budget:,} tokens per step, decodes first; requests arrive evenly; no prefix is cached",
    ]
    if architecture.moe:
        skew = deployment.routing.skew
        lines.append(f"experts drawn by a Zipf law of exponent {skew:g}" if skew else "experts drawn uniformly")
    if deployment.graphs:
        lines.append("decode steps padded to the batch sizes that vLLM captures graphs for")
    if parallel.gpus > 1:
        lines.append(f"layout {layout_name(parallel)}" + (f": {deployment.link.basis}" if deployment.link else ""))
    if parallel.ep > 1 and parallel.dp > 1:
        lines.append("data-parallel ranks in lock-step, all as long as the busiest")
    lines += [f"GPU figures: confidence {deployment.gpu.confidence} ({deployment.gpu.source})"]
    lines += list(architecture.notes)
    lines += _error_basis(calibration) if deployment.efficiencies is not ROOFLINE else [FLOOR_BASIS]
    return lines


def _error_basis(calibration: Calibration | None) -> list[str]:
    if calibration is None:
        return [TPOT_BASIS, TTFT_BASIS, f"no calibration: {WEAK}"]
    if calibration.tpot_range is None:
        beyond = [ratio for ratio in calibration.in_sample_ratios if not TPOT_RANGE[0] <= ratio <= TPOT_RANGE[1]]
        told = [f"the range reaches to what was fitted to: {ratio:.2f} times the estimate" for ratio in beyond]
        return [*told, TPOT_BASIS, TTFT_BASIS]
    return ["error range of TPOT: what points that were left out of the fit, one at a time, were off by", TTFT_BASIS]
