"""The whole answer to a request: estimates, and everything that is compared with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.calibrate import Calibration, from_serving
from traceanalyzer.commands.estimate.compute import DeploymentEstimate, estimate
from traceanalyzer.commands.estimate.deployment import Deployment
from traceanalyzer.commands.estimate.efficiencies import peak_tflops
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.from_results import observations
from traceanalyzer.commands.estimate.from_roofline import calibrate, predict
from traceanalyzer.commands.estimate.gpu_comparison import shortcut
from traceanalyzer.commands.estimate.link import default_link
from traceanalyzer.commands.estimate.memory_fit import refuse_unfit
from traceanalyzer.commands.estimate.parallel import ParallelComparison, compare_layouts, link_range
from traceanalyzer.commands.estimate.request import EstimateRequest, SecondGpu, ServingRuns
from traceanalyzer.commands.estimate.result import EstimatePrediction, Shortcut
from traceanalyzer.commands.estimate.unlike import far_off, unlike
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import ExpertRouting, ModelError, Parallel
from traceanalyzer.problems import TraceWarning
from traceanalyzer.roofline import Request, Roofline, RooflineError, roofline
from traceanalyzer.trace import Trace


@dataclass(frozen=True)
class Results:
    """Estimates and what was compared with them; None for what was not asked for.

    Attributes:
        estimates: one for each batch.
        second: the first of them on a second GPU.
        shortcut: the same by Amdahl's law.
        layouts: layouts compared.
        calibration: where the efficiencies come from.
        prediction: what a faster hotspot of a trace brings.
        warnings: where traces and results do not fit the model and GPU.
    """

    estimates: tuple[DeploymentEstimate, ...]
    second: DeploymentEstimate | None
    shortcut: Shortcut | None
    layouts: ParallelComparison | None
    calibration: Calibration | None
    prediction: EstimatePrediction | None
    warnings: tuple[TraceWarning, ...] = ()


def answer(request: EstimateRequest) -> Results:
    """Estimate everything that is asked for.

    Raises:
        EstimateError: it cannot be estimated; the message says what to give instead.
        HardwareError: a peak that the model needs is unknown.
        ModelError: the layout does not fit the model.
    """
    deployment = request.deployment
    if request.layouts and deployment.parallel.gpus == 1:
        deployment = replace(deployment, parallel=_first_that_fits(deployment, request))
    if request.must_fit:
        refuse_unfit(deployment, request.engine.utilisation)
    calibration, warnings = _calibration(deployment, request)
    if calibration:
        deployment = replace(deployment, efficiencies=calibration.efficiencies)
    estimates = tuple(_estimate(deployment, request, batch, calibration) for batch in request.batches or (None,))
    first = estimates[0]
    second = cut = layouts = prediction = None
    if request.second:
        second = _estimate(on_gpu(deployment, request.second.gpu), request, first.traffic.concurrency)
        cut = _shortcut(first, second, request.second)
    if request.layouts:
        layouts = compare_layouts(
            deployment,
            request.layouts,
            request.isl,
            request.osl,
            request.batches or (first.traffic.concurrency,),
            request.links or link_range(deployment, deployment.gpu.link_gbps),
            request.engine,
        )
    if request.faster:
        roof = _roofline(request.faster.trace, deployment, request.faster.routing)
        warnings += unlike(request.faster.trace, roof)
        prediction = predict(roof, request.faster.to_share, request.faster.changes)
    return Results(estimates, second, cut, layouts, calibration, prediction, tuple(warnings))


def _estimate(
    deployment: Deployment, request: EstimateRequest, batch: int | None, calibration: Calibration | None = None
) -> DeploymentEstimate:
    return estimate(
        deployment,
        request.isl,
        request.osl,
        batch,
        slo=request.slo,
        engine=request.engine,
        calibration=calibration,
    )


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
    if isinstance(source, ServingRuns):
        seen = observations(source.results, request.isl, source.osl)
        fitted = from_serving(deployment, seen, request.engine.budget)
        return fitted, far_off(fitted)
    roof = _roofline(source, deployment, deployment.routing)
    return calibrate(deployment.efficiencies, roof), unlike(source, roof)


def _roofline(trace: Trace, deployment: Deployment, routing: ExpertRouting) -> Roofline:
    """Return the roofline of a trace under the deployment's model, GPU and, beyond one GPU, layout."""
    parallel = deployment.parallel
    several = parallel.gpus > 1
    request = Request(
        model=deployment.architecture,
        gpu=deployment.gpu,
        routing=routing,
        tp=parallel.tp if several else None,
        pp=parallel.pp if several else None,
        ep=parallel.ep if several else None,
    )
    try:
        return roofline(trace, request)
    except RooflineError as error:
        raise EstimateError(f"{trace.metadata.source.path}: {error}") from error


def on_gpu(deployment: Deployment, gpu: Gpu) -> Deployment:
    """Return the deployment on another GPU, whose kernels reach the same shares of the peaks."""
    note = f"kernels reach the same shares of the peaks on {gpu.name} as on {deployment.gpu.name}"
    efficiencies = replace(deployment.efficiencies, basis=(note, *deployment.efficiencies.basis))
    return replace(deployment, gpu=gpu, efficiencies=efficiencies, link=default_link(gpu) or deployment.link)


def _shortcut(first: DeploymentEstimate, second: DeploymentEstimate, asked: SecondGpu) -> Shortcut:
    # The data type that does most of the arithmetic.
    work: dict[str, float] = {}
    for entry in first.decode:
        work[entry.op.dtype] = work.get(entry.op.dtype, 0.0) + entry.count * (entry.op.flops or 0.0)
    dtype = max(work, key=lambda name: work[name])
    own, other = first.deployment.gpu, second.deployment.gpu
    measured = asked.measured_tokens_per_s
    return shortcut(
        compute_ratio=(peak_tflops(other, dtype) or 1.0) / (peak_tflops(own, dtype) or 1.0),
        bandwidth_ratio=other.bandwidth_gbps / own.bandwidth_gbps,
        decode_share=asked.shares.get("decode", first.decode_compute_share),
        prefill_share=asked.shares.get("prefill", first.prefill_compute_share),
        batch=first.traffic.concurrency,
        tokens_per_s=measured if measured is not None else first.served.tokens_per_s,
    )
