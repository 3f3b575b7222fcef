"""``traceanalyzer estimate``: TTFT, TPOT and tokens/s of a model on GPUs, without running it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceanalyzer.cli.common import (
    FiniteRange,
    emit_json,
    json_option,
    no_cache_option,
    open_one,
    rank_option,
    reads_pipes,
    show_warnings,
    warnings_of,
)
from traceanalyzer.cli.plotting import plot_option_of, save_plot
from traceanalyzer.cli.request_options import gpu_file_option, named_gpu, named_model
from traceanalyzer.commands.estimate.options import (
    batches_of,
    format_of,
    links_of,
    refuse_alone,
    shares_of,
)

if TYPE_CHECKING:
    from traceanalyzer.commands.estimate.calibrate import Calibration
    from traceanalyzer.commands.estimate.compute import Estimate
    from traceanalyzer.commands.estimate.deployment import Deployment
    from traceanalyzer.commands.estimate.gpu_comparison import Shortcut
    from traceanalyzer.commands.estimate.outcomes import Results
    from traceanalyzer.commands.estimate.parallel import LayoutComparison
    from traceanalyzer.model import Architecture, Routing
    from traceanalyzer.problems import TraceWarning
    from traceanalyzer.roofline import Roofline

LONGEST = 10_000_000
"""``estimate.deployment.LONGEST``, written again as ``--help`` must not load the model."""


@click.command()
@click.option("--model", "model_name", required=True, help="A built-in name such as gpt-oss-120b, or a config.json.")
@click.option("--gpu", "gpu_name", required=True, help="A GPU; `gpus` lists those known.")
@click.option("--isl", type=click.IntRange(1, LONGEST), default=1024, show_default=True, help="Tokens of a prompt.")
@click.option("--osl", type=click.IntRange(1, LONGEST), default=1024, show_default=True, help="Tokens of an answer.")
@click.option("--batch", help="Requests in flight; several with commas. The largest within --slo, else 1.")
@click.option("--tp", type=click.IntRange(min=1), default=1, help="Tensor-parallel degree.")
@click.option("--pp", type=click.IntRange(min=1), default=1, help="Pipeline-parallel degree.")
@click.option(
    "--ep", type=click.IntRange(min=1), default=1, help="Expert-parallel ranks; beyond --tp with DP attention."
)
@click.option("--dp", type=click.IntRange(min=1), default=1, help="Data-parallel copies.")
@click.option("--dtype", help="Format of the weights: bf16, fp8, int4, mxfp4, nvfp4, ...")
@click.option("--kv-dtype", help="Format of the KV cache: bf16, fp8, ...")
@click.option(
    "--max-num-batched-tokens",
    "budget",
    type=click.IntRange(min=1),
    default=8192,
    show_default=True,
    help="Tokens of a step: decodes first, prompts fill the rest.",
)
@click.option(
    "--gpu-memory-utilization",
    "utilisation",
    type=FiniteRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Share of a GPU's memory that the engine uses.",
)
@click.option("--gpu-fit", is_flag=True, help="Refuse a layout that cannot hold the weights.")
@click.option(
    "--slo", help="Search the largest batch within ttft=2s,tpot=200ms, or a preset such as mlperf-llama2-70b-server."
)
@click.option("--compare-gpu", metavar="GPU", help="The same on a second GPU, and the shortcut by Amdahl's law.")
@click.option(
    "--shares", help="Compute-bound shares for the shortcut: decode=0.7,prefill=0.85. The model's by default."
)
@click.option("--measured-tokens-per-s", type=FiniteRange(min=0, min_open=True), help="Output measured on --gpu.")
@click.option("--compare-parallel", metavar="LAYOUTS", help="Compare layouts: tp=4,pp=4,ep=4 or tp=2+pp=2,tp=4.")
@click.option("--link-gbps", help="Bandwidth between GPUs in one direction, GB/s; LOW:HIGH with --compare-parallel.")
@click.option("--ep-imbalance", type=FiniteRange(min=1), help="Busiest expert-parallel rank over the mean.")
@click.option("--routing-skew", type=FiniteRange(min=0), help="Zipf exponent of routing; 0: uniform.  [0.69]")
@click.option("--calibrate", metavar="TRACE", help="Take achieved efficiencies from a trace of this model and GPU.")
@click.option("--calibrate-serving", metavar="RESULTS", help="Fit to serving results of this model, GPU and layout.")
@click.option("--select", multiple=True, metavar="KEY=VALUE", help="Which of the results to fit to. Repeatable.")
@click.option("--trace", metavar="TRACE", help="Predict TPOT of this trace after a hotspot got faster.")
@click.option("--to-share", multiple=True, metavar="ROLE=SHARE", help="With --trace: moe_down=0.6 of its roof.")
@click.option("--change", multiple=True, metavar="ROLE=BEFORE:AFTER", help="With --trace: a measured change of time.")
@click.option("--roofline", "ideal", is_flag=True, help="Every kernel at the peak, launching free: a floor.")
@click.option("--no-graphs", is_flag=True, help="Decode steps are not padded to captured batch sizes.")
@plot_option_of("Draw what bounds a step over the batch")
@click.option("--limit", type=click.IntRange(min=0), default=12, show_default=True, help="Ops shown; 0 shows all.")
@gpu_file_option
@rank_option
@json_option
@no_cache_option
@reads_pipes
def estimate(model_name: str, gpu_name: str, plot: Path | None, as_json: bool, limit: int, **options: Any) -> None:
    """Estimate TTFT, TPOT, tokens/s and memory of a model on GPUs, from the work of every op.

    Times are max(FLOP / peak, bytes / bandwidth) with efficiencies, summed over ops and layers; chunked prefill is
    simulated step by step. Every figure comes with what it rests on and how far off such estimates were.
    """
    from traceanalyzer.commands.estimate import view as report
    from traceanalyzer.commands.estimate.document import document, warnings
    from traceanalyzer.commands.estimate.errors import EstimateError
    from traceanalyzer.model import ModelError
    from traceanalyzer.show.terminal import console

    try:
        found = _results(model_name, gpu_name, **options)
    except (EstimateError, ModelError) as error:
        raise click.ClickException(str(error)) from error
    show_warnings(warnings(found))
    if plot is not None:
        _draw(found.estimates[0], plot)
    if as_json:
        emit_json(document(found))
        return
    screen = console()
    screen.print(report.render(found, screen.width, limit))


def _results(
    model_name: str,
    gpu_name: str,
    *,
    isl: int,
    osl: int,
    batch: str | None,
    budget: int,
    utilisation: float,
    gpu_fit: bool,
    slo: str | None,
    compare_gpu: str | None,
    shares: str | None,
    measured_tokens_per_s: float | None,
    compare_parallel: str | None,
    link_gbps: str | None,
    **options: Any,
) -> Results:
    from traceanalyzer.commands.estimate.compute import estimate as make
    from traceanalyzer.commands.estimate.errors import EstimateError
    from traceanalyzer.commands.estimate.memory_fit import refuse_unfit
    from traceanalyzer.commands.estimate.outcomes import Results
    from traceanalyzer.commands.estimate.parallel import parse_layouts
    from traceanalyzer.commands.estimate.slo import parse_slo

    try:
        batches, links = batches_of(batch), links_of(link_gbps, several=compare_parallel is not None)
        limits = None if slo is None else parse_slo(slo)
        layouts = () if compare_parallel is None else parse_layouts(compare_parallel)
        stated = shares_of(shares)
    except EstimateError as error:
        raise click.UsageError(str(error)) from error
    refuse_alone(options, compare_gpu=compare_gpu, shares=shares, measured=measured_tokens_per_s)
    deployment = _deployment(model_name, gpu_name, links[-1] if links else None, options)
    told: list[TraceWarning] = []
    if layouts and deployment.parallel.gpus == 1:
        deployment = replace(deployment, parallel=_first_that_fits(deployment, layouts, utilisation))
    if gpu_fit:
        refuse_unfit(deployment, utilisation)
    routing = deployment.routing
    calibration = _calibration(deployment, isl, osl, budget, options, told)
    if calibration:
        deployment = replace(deployment, efficiencies=calibration.efficiencies)
    common: dict[str, Any] = {"slo": limits, "budget": budget, "utilisation": utilisation}
    estimates = tuple(
        make(deployment, isl, osl, size, calibration=calibration, **common) for size in batches or (None,)
    )
    second = cut = None
    if compare_gpu:
        second = make(
            _other_gpu(deployment, compare_gpu, options["gpu_file"]),
            isl,
            osl,
            estimates[0].traffic.concurrency,
            **common,
        )
        cut = _shortcut(estimates[0], second, stated, measured_tokens_per_s)
    compared = None
    if layouts:
        sizes = batches or (estimates[0].traffic.concurrency,)
        compared = _compare_layouts(deployment, layouts, isl, osl, sizes, links, budget, utilisation)
    prediction = None
    if options["trace"]:
        from traceanalyzer.commands.estimate.from_roofline import predict
        from traceanalyzer.model import Routing

        # As `roofline` shows it, unless a skew is given.
        asked = routing if options["routing_skew"] is not None else Routing()
        prediction = predict(
            _roofline(options["trace"], deployment, asked, options, told), options["to_share"], options["change"]
        )
    return Results(estimates, second, cut, compared, calibration, prediction, tuple(told))


def _deployment(model_name: str, gpu_name: str, link_gbps: float | None, options: dict[str, Any]) -> Deployment:
    from traceanalyzer.commands.estimate.deployment import ROUTING_SKEW, Deployment
    from traceanalyzer.commands.estimate.efficiencies import ROOFLINE, default_efficiencies
    from traceanalyzer.commands.estimate.link import default_link, measured_link
    from traceanalyzer.commands.estimate.parallel import layout
    from traceanalyzer.model import Routing, with_formats

    weights, kv = format_of(options["dtype"], "--dtype"), format_of(options["kv_dtype"], "--kv-dtype")
    architecture: Architecture = with_formats(named_model(model_name), weights=weights, kv=kv)
    gpu = named_gpu(gpu_name, options["gpu_file"])
    skew = options["routing_skew"]
    return Deployment(
        architecture=architecture,
        gpu=gpu,
        efficiencies=ROOFLINE if options["ideal"] else default_efficiencies(gpu),
        parallel=layout(tp=options["tp"], pp=options["pp"], dp=options["dp"], ep=options["ep"]),
        link=measured_link(gpu, link_gbps) if link_gbps else default_link(gpu),
        routing=Routing(skew=ROUTING_SKEW if skew is None else skew),
        graphs=not options["no_graphs"],
        expert_imbalance=options["ep_imbalance"],
    )


def _first_that_fits(deployment: Deployment, layouts: tuple[Any, ...], utilisation: float) -> Any:
    from traceanalyzer.commands.estimate.errors import EstimateError
    from traceanalyzer.commands.estimate.memory_fit import refuse_unfit
    from traceanalyzer.model import ModelError

    for parallel in layouts:
        try:
            refuse_unfit(replace(deployment, parallel=parallel), utilisation)
        except (EstimateError, ModelError):
            continue
        return parallel
    return layouts[0]


def _other_gpu(deployment: Deployment, name: str, gpu_file: Path | None) -> Deployment:
    """Return the deployment on a second GPU: kernels reach the same shares of the peaks as on the first."""
    from traceanalyzer.commands.estimate.link import default_link

    gpu = named_gpu(name, gpu_file)
    note = f"kernels reach the same shares of the peaks on {gpu.name} as on {deployment.gpu.name}"
    efficiencies = replace(deployment.efficiencies, basis=(note, *deployment.efficiencies.basis))
    return replace(deployment, gpu=gpu, efficiencies=efficiencies, link=default_link(gpu) or deployment.link)


def _shortcut(first: Estimate, second: Estimate, stated: dict[str, float], measured: float | None) -> Shortcut:
    from traceanalyzer.commands.estimate.efficiencies import peak_tflops
    from traceanalyzer.commands.estimate.gpu_comparison import shortcut

    # The data type that does most of the arithmetic.
    work: dict[str, float] = {}
    for entry in first.decode:
        work[entry.op.dtype] = work.get(entry.op.dtype, 0.0) + entry.count * (entry.op.flops or 0.0)
    dtype = max(work, key=lambda name: work[name])
    own, other = first.deployment.gpu, second.deployment.gpu
    return shortcut(
        compute_ratio=(peak_tflops(other, dtype) or 1.0) / (peak_tflops(own, dtype) or 1.0),
        bandwidth_ratio=other.bandwidth_gbps / own.bandwidth_gbps,
        decode_share=stated.get("decode", first.decode_compute_share),
        prefill_share=stated.get("prefill", first.prefill_compute_share),
        batch=first.traffic.concurrency,
        tokens_per_s=measured if measured is not None else first.served.tokens_per_s,
    )


def _compare_layouts(
    deployment: Deployment,
    layouts: tuple[Any, ...],
    isl: int,
    osl: int,
    batches: tuple[int, ...],
    links: tuple[float, ...],
    budget: int,
    utilisation: float,
) -> LayoutComparison:
    from traceanalyzer.commands.estimate.parallel import compare_layouts, link_range

    rates = links or link_range(deployment, deployment.gpu.link_gbps)
    return compare_layouts(deployment, layouts, isl, osl, batches, rates, budget=budget, utilisation=utilisation)


def _roofline(
    path: str, deployment: Deployment, routing: Routing, options: dict[str, Any], told: list[TraceWarning]
) -> Roofline:
    """Return the roofline of a trace, and add to ``told`` what is odd about the trace and what it does not fit."""
    from traceanalyzer.commands.estimate.errors import EstimateError
    from traceanalyzer.commands.estimate.unlike import unlike
    from traceanalyzer.roofline import Request, RooflineError, roofline

    trace = open_one([path], rank=options["rank"], no_cache=options["no_cache"])
    parallel = deployment.parallel
    request = Request(
        model=deployment.architecture,
        gpu=deployment.gpu,
        routing=routing,
        tp=parallel.tp if parallel.gpus > 1 else None,
        pp=parallel.pp if parallel.gpus > 1 else None,
        ep=parallel.ep if parallel.gpus > 1 else None,
    )
    try:
        found = roofline(trace, request)
    except RooflineError as error:
        raise EstimateError(f"{path}: {error}") from error
    told += [*warnings_of(trace), *unlike(trace, found)]
    return found


def _calibration(
    deployment: Deployment, isl: int, osl: int, budget: int, options: dict[str, Any], told: list[TraceWarning]
) -> Calibration | None:
    """Return what --calibrate or --calibrate-serving asks for, and add to ``told`` what is odd about the input."""
    if options["calibrate"]:
        from traceanalyzer.commands.estimate.from_roofline import calibrate

        found = _roofline(options["calibrate"], deployment, deployment.routing, options, told)
        return calibrate(deployment.efficiencies, found)
    path = options["calibrate_serving"]
    if not path:
        return None
    from traceanalyzer.commands.estimate.calibrate import from_serving
    from traceanalyzer.commands.estimate.from_results import observations, one_series
    from traceanalyzer.commands.estimate.unlike import far_off
    from traceanalyzer.serving.grouping import select
    from traceanalyzer.serving.read import read
    from traceanalyzer.serving.result_checks import check, failed

    results = read(path)
    chosen = one_series(select(results.results, options["select"], "--select"))
    told += [*results.warnings, *(warning for result in chosen for warning in check(result)), *failed(chosen)]
    source = click.get_current_context().get_parameter_source("osl")
    given = osl if source is not None and source.name == "COMMANDLINE" else None
    fitted = from_serving(deployment, observations(chosen, isl, given), budget)
    told += far_off(fitted)
    return fitted


def _draw(found: Estimate, path: Path) -> None:
    from traceanalyzer.commands.estimate.compute import mean_context, step_over_batches
    from traceanalyzer.commands.estimate.plot import time_by_bound

    rows = step_over_batches(found.deployment, mean_context(found.traffic.isl, found.traffic.osl))
    title = f"{found.deployment.architecture.name}, {found.deployment.gpu.name}"
    save_plot(time_by_bound(rows, title), path)
