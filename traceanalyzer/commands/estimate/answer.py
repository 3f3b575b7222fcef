"""The whole answer to a request: estimates, and everything that is compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from traceanalyzer.commands.estimate.calibrate import Calibration, Observation, from_serving
from traceanalyzer.commands.estimate.compute import DeploymentEstimate, estimate
from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Deployment, EngineSettings
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.from_roofline import calibrate, predict, unlike
from traceanalyzer.commands.estimate.gpu_comparison import on_gpu, peak_ratios, ratios, shortcut
from traceanalyzer.commands.estimate.memory_fit import gigabytes, refuse_unfit
from traceanalyzer.commands.estimate.parallel import compare_layouts, link_range
from traceanalyzer.commands.estimate.result import EstimateDocument, EstimateLine, EstimatePrediction, Shortcut
from traceanalyzer.commands.estimate.slo import Slo
from traceanalyzer.declare import part_of
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import ExpertRouting, ModelError, Parallel
from traceanalyzer.problems import TraceWarning
from traceanalyzer.roofline import Request, Roofline, RooflineError, roofline
from traceanalyzer.trace import Trace


@dataclass(frozen=True)
class EstimateRequest:
    """What one call of ``answer`` estimates.

    Attributes:
        deployment: the model on its GPUs.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        batches: requests in flight; by default the largest within ``slo``, or 1.
        slo: limits for the largest batch.
        engine: tokens per step, and memory that may be used.
        must_fit: whether a layout that cannot hold the weights is an error.
        second_gpu: another GPU to compare with.
        shares: compute-bound shares for the shortcut by phase; the model's by default.
        measured_tokens_per_s: output measured on the first GPU, for the shortcut; the estimate by default.
        layouts: layouts to compare; the deployment's own counts only if it has more than one GPU.
        links: bandwidths of the link to compare them at, GB/s; by default a range for such links.
        calibrate_with: a trace or measured loads to take efficiencies from; the defaults without.
        faster: a trace whose hotspots get faster.
        to_share: such as ``moe_down=0.6``, the share of its roof that a hotspot reaches.
        changes: such as ``moe_down=156.7:60.2``, measured before and after.
        faster_routing: how tokens spread over experts in that trace.
    """

    deployment: Deployment
    isl: int = 1024
    osl: int = 1024
    batches: tuple[int, ...] = ()
    slo: Slo | None = None
    engine: EngineSettings = DEFAULT_ENGINE
    must_fit: bool = False
    second_gpu: Gpu | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    measured_tokens_per_s: float | None = None
    layouts: tuple[Parallel, ...] = ()
    links: tuple[float, ...] = ()
    calibrate_with: Trace | tuple[Observation, ...] | None = None
    faster: Trace | None = None
    to_share: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    faster_routing: ExpertRouting = field(default_factory=ExpertRouting)


@dataclass(frozen=True)
class EstimateResults:
    """The document, and the estimates that it is made of: one for each batch, and the first on the second GPU."""

    document: EstimateDocument
    estimates: tuple[DeploymentEstimate, ...]
    second: DeploymentEstimate | None


def answer(request: EstimateRequest, warnings: list[TraceWarning]) -> EstimateResults:
    """Estimate everything that is asked for; ``warnings`` are those about the files that the request names.

    Raises:
        EstimateError: an estimate is impossible; the message says what to give instead.
        HardwareError: a peak that the model needs is unknown.
        ModelError: the layout does not fit the model.
    """
    deployment = request.deployment
    if request.layouts and deployment.parallel.gpus == 1:
        deployment = replace(deployment, parallel=_first_that_fits(deployment, request))
    if request.must_fit:
        refuse_unfit(deployment, request.engine.utilisation)
    calibration, odd = _calibration(deployment, request)
    if calibration:
        deployment = replace(deployment, efficiencies=calibration.efficiencies)
    made = partial(estimate, isl=request.isl, osl=request.osl, slo=request.slo, engine=request.engine)
    estimates = tuple(made(deployment, batch=one, calibration=calibration) for one in request.batches or (None,))
    first, second, parallel = estimates[0], None, None
    batch = first.answer.batch
    if request.second_gpu:
        second = made(on_gpu(deployment, request.second_gpu), batch=batch)
    if request.layouts:
        lengths, batches = (request.isl, request.osl), request.batches or (batch,)
        rates = request.links or link_range(deployment)
        parallel = compare_layouts(deployment, request.layouts, *lengths, batches, rates, request.engine)
    prediction, unlike_faster = _prediction(deployment, request)
    document = EstimateDocument(
        **structs.asdict(first.answer),
        warnings=[*dict.fromkeys([*warnings, *odd, *unlike_faster]), *_doubts(first)],
        batches=[part_of(EstimateLine, one.answer) for one in estimates],
        second_gpu=second.answer if second else None,
        ratios=ratios(first, second) if second else None,
        shortcut=_shortcut(first, request),
        parallel=parallel,
        calibration=calibration.told if calibration else None,
        prediction=prediction,
    )
    return EstimateResults(document, estimates, second)


def _shortcut(first: DeploymentEstimate, request: EstimateRequest) -> Shortcut | None:
    if request.second_gpu is None:
        return None
    measured, (compute, bandwidth) = request.measured_tokens_per_s, peak_ratios(first, request.second_gpu)
    return shortcut(
        compute_ratio=compute,
        bandwidth_ratio=bandwidth,
        decode_share=request.shares.get("decode", first.answer.compute_bound_share),
        prefill_share=request.shares.get("prefill", first.answer.prefill_compute_bound_share),
        batch=first.answer.batch,
        tokens_per_s=measured if measured is not None else first.served.tokens_per_s,
    )


def _doubts(first: DeploymentEstimate) -> list[TraceWarning]:
    """Return what stands against the estimate itself."""
    memory, batch, doubts = first.answer.memory, first.answer.batch, []
    if memory.weights_fit is False:
        told = f"{gigabytes(memory.weight_bytes)} of weights per GPU do not fit into {gigabytes(memory.usable_bytes)}"
        doubts.append(TraceWarning("does_not_fit", f"{told} usable (--gpu-fit makes this an error)"))
    elif memory.batch_fits is False:
        told = f"the KV cache holds {memory.sequences} of {batch} sequences at full length"
        doubts.append(TraceWarning("cache_too_small", told))
    if first.largest is not None and first.largest.batch == 0:
        doubts.append(TraceWarning("slo_not_kept", "not even one sequence keeps the limits; the figures are for one"))
    return doubts


def _first_that_fits(deployment: Deployment, request: EstimateRequest) -> Parallel:
    for parallel in request.layouts:
        try:
            refuse_unfit(replace(deployment, parallel=parallel), request.engine.utilisation)
        except (EstimateError, ModelError):
            continue
        return parallel
    return request.layouts[0]


def _calibration(deployment: Deployment, request: EstimateRequest) -> tuple[Calibration | None, list[TraceWarning]]:
    """Return what the request calibrates with, and where that does not fit the model and GPU."""
    source = request.calibrate_with
    if source is None:
        return None, []
    if isinstance(source, Trace):
        roof = _roofline(source, deployment, deployment.routing)
        return calibrate(deployment.efficiencies, roof), unlike(source, roof)
    fitted = from_serving(deployment, source, request.engine.budget)
    return fitted, fitted.far_off()


def _prediction(
    deployment: Deployment, request: EstimateRequest
) -> tuple[EstimatePrediction | None, list[TraceWarning]]:
    if request.faster is None:
        return None, []
    roof = _roofline(request.faster, deployment, request.faster_routing)
    return predict(roof, request.to_share, request.changes), unlike(request.faster, roof)


def _roofline(trace: Trace, deployment: Deployment, routing: ExpertRouting) -> Roofline:
    """Return the roofline of a trace under the deployment's model, GPU and, beyond one GPU, layout."""
    parallel = deployment.parallel
    request = Request(model=deployment.architecture, gpu=deployment.gpu, routing=routing)
    if parallel.gpus > 1:
        request = replace(request, tp=parallel.tp, pp=parallel.pp, ep=parallel.ep)
    try:
        return roofline(trace, request)
    except RooflineError as error:
        raise EstimateError(f"{trace.metadata.source.path}: {error}") from error
