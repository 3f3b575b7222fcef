"""The options of ``estimate``, and the request that they state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import open_one, warnings_of
from traceanalyzer.cli.request_options import named_gpu, named_model

if TYPE_CHECKING:
    from traceanalyzer.commands.estimate.deployment import Deployment
    from traceanalyzer.commands.estimate.request import EstimateRequest, ServingRuns
    from traceanalyzer.model import Format
    from traceanalyzer.problems import TraceWarning
    from traceanalyzer.trace import Trace

MOST_BATCHES = 64


@dataclass(frozen=True)
class EstimateOptions:
    """The options as they are typed, by the names that Click gives them; the command's help says what each is."""

    model_name: str
    gpu_name: str
    isl: int
    osl: int
    batch: str | None
    tp: int
    pp: int
    ep: int
    dp: int
    dtype: str | None
    kv_dtype: str | None
    budget: int
    utilisation: float
    gpu_fit: bool
    slo: str | None
    compare_gpu: str | None
    shares: str | None
    measured_tokens_per_s: float | None
    compare_parallel: str | None
    link_gbps: str | None
    ep_imbalance: float | None
    routing_skew: float | None
    calibrate: str | None
    calibrate_serving: str | None
    select: tuple[str, ...]
    trace: str | None
    to_share: tuple[str, ...]
    change: tuple[str, ...]
    ideal: bool
    no_graphs: bool
    gpu_file: Path | None
    rank: int | None
    no_cache: bool


def refuse_alone(options: EstimateOptions) -> None:
    """Stop where an option is given without the one that it goes with."""
    calibrated = options.calibrate or options.calibrate_serving
    rules = {
        "--shares and --measured-tokens-per-s go with --compare-gpu": not options.compare_gpu
        and (options.shares or options.measured_tokens_per_s),
        "--to-share and --change go with --trace": not options.trace and (options.to_share or options.change),
        "--select goes with --calibrate-serving": options.select and not options.calibrate_serving,
        "--calibrate and --calibrate-serving exclude each other": options.calibrate and options.calibrate_serving,
        "--roofline leaves nothing to calibrate": options.ideal and calibrated,
    }
    for message, broken in rules.items():
        if broken:
            raise click.UsageError(message)


def request_of(options: EstimateOptions) -> tuple[EstimateRequest, list[TraceWarning]]:
    """Return what the options ask for, and what is odd about the files that they name.

    Raises:
        click.UsageError: an option cannot be read, or lacks the one that it goes with.
        EstimateError: the model, layout and GPU contradict each other.
    """
    from traceanalyzer.commands.estimate.deployment import EngineSettings
    from traceanalyzer.commands.estimate.estimate_error import EstimateError
    from traceanalyzer.commands.estimate.parallel import parse_layouts
    from traceanalyzer.commands.estimate.request import EstimateRequest, FasterHotspots, SecondGpu
    from traceanalyzer.commands.estimate.slo import parse_slo
    from traceanalyzer.model import ExpertRouting

    try:
        batches = batches_of(options.batch)
        links = links_of(options.link_gbps, several=options.compare_parallel is not None)
        limits = None if options.slo is None else parse_slo(options.slo)
        layouts = () if options.compare_parallel is None else parse_layouts(options.compare_parallel)
        shares = shares_of(options.shares)
    except EstimateError as error:
        raise click.UsageError(str(error)) from error
    refuse_alone(options)
    deployment = _deployment(options, links[-1] if links else None)
    warnings: list[TraceWarning] = []
    source: Trace | ServingRuns | None = None
    if options.calibrate:
        source = _opened(options.calibrate, options, warnings)
    elif options.calibrate_serving:
        source = _serving_runs(options.calibrate_serving, options, warnings)
    second = faster = None
    if options.compare_gpu:
        second = SecondGpu(named_gpu(options.compare_gpu, options.gpu_file), shares, options.measured_tokens_per_s)
    if options.trace:
        # As `roofline` shows it, unless a skew is given.
        routing = ExpertRouting() if options.routing_skew is None else deployment.routing
        opened = _opened(options.trace, options, warnings)
        faster = FasterHotspots(opened, options.to_share, options.change, routing)
    request = EstimateRequest(
        deployment=deployment,
        isl=options.isl,
        osl=options.osl,
        batches=batches,
        slo=limits,
        engine=EngineSettings(options.budget, options.utilisation),
        must_fit=options.gpu_fit,
        second=second,
        layouts=layouts,
        links=links,
        calibrate_with=source,
        faster=faster,
    )
    return request, warnings


def _deployment(options: EstimateOptions, link_gbps: float | None) -> Deployment:
    from traceanalyzer.commands.estimate.deployment import ROUTING_SKEW, Deployment
    from traceanalyzer.commands.estimate.efficiencies import ROOFLINE, default_efficiencies
    from traceanalyzer.commands.estimate.link import default_link, measured_link
    from traceanalyzer.commands.estimate.parallel import layout
    from traceanalyzer.model import ExpertRouting, with_formats

    weights, kv = format_of(options.dtype, "--dtype"), format_of(options.kv_dtype, "--kv-dtype")
    architecture = with_formats(named_model(options.model_name), weights=weights, kv=kv)
    gpu = named_gpu(options.gpu_name, options.gpu_file)
    return Deployment(
        architecture=architecture,
        gpu=gpu,
        efficiencies=ROOFLINE if options.ideal else default_efficiencies(gpu),
        parallel=layout(tp=options.tp, pp=options.pp, dp=options.dp, ep=options.ep),
        link=measured_link(gpu, link_gbps) if link_gbps else default_link(gpu),
        routing=ExpertRouting(skew=ROUTING_SKEW if options.routing_skew is None else options.routing_skew),
        graphs=not options.no_graphs,
        expert_imbalance=options.ep_imbalance,
    )


def _opened(path: str, options: EstimateOptions, warnings: list[TraceWarning]) -> Trace:
    trace = open_one([path], rank=options.rank, no_cache=options.no_cache)
    warnings += warnings_of(trace)
    return trace


def _serving_runs(path: str, options: EstimateOptions, warnings: list[TraceWarning]) -> ServingRuns:
    from traceanalyzer.commands.estimate.from_results import one_series
    from traceanalyzer.commands.estimate.request import ServingRuns
    from traceanalyzer.serving.grouping import select
    from traceanalyzer.serving.read import read
    from traceanalyzer.serving.result_checks import check, failed

    results = read(path)
    chosen = one_series(select(results.results, options.select, "--select"))
    warnings += [*results.warnings, *(warning for result in chosen for warning in check(result)), *failed(chosen)]
    # The default of --osl says nothing about the results.
    stated = click.get_current_context().get_parameter_source("osl")
    return ServingRuns(chosen, options.osl if stated is not None and stated.name == "COMMANDLINE" else None)


def batches_of(text: str | None) -> tuple[int, ...]:
    """Read ``--batch``: numbers of requests with commas; none where it is not given."""
    from traceanalyzer.commands.estimate.deployment import MOST_SEQUENCES
    from traceanalyzer.commands.estimate.estimate_error import EstimateError

    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 1 <= int(part) <= MOST_SEQUENCES for part in parts) or len(parts) > MOST_BATCHES:
        raise EstimateError(f"--batch is a number of requests from 1 to {MOST_SEQUENCES:,}, or several, not {text!r}")
    return tuple(dict.fromkeys(int(part) for part in parts))


def links_of(text: str | None, *, several: bool) -> tuple[float, ...]:
    """Read ``--link-gbps``: one bandwidth, or LOW:HIGH where several may be compared."""
    from traceanalyzer.commands.estimate.estimate_error import EstimateError
    from traceanalyzer.commands.estimate.parallel import spread

    if text is None:
        return ()
    low, _, high = text.partition(":")
    try:
        ends = (float(low), float(high or low))
    except ValueError:
        raise EstimateError(f"--link-gbps is a bandwidth in GB/s, or LOW:HIGH, not {text!r}") from None
    rates = spread(*ends)
    if len(rates) > 1 and not several:
        raise EstimateError("--link-gbps LOW:HIGH goes with --compare-parallel")
    return rates


def shares_of(text: str | None) -> dict[str, float]:
    """Read ``--shares``, such as ``decode=0.7,prefill=0.85``."""
    from traceanalyzer.commands.estimate.estimate_error import EstimateError

    shares: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if name.strip() not in ("decode", "prefill") or not 0 <= share <= 1:
            raise EstimateError(f"shares are written as decode=0.7,prefill=0.85, each 0 to 1, not {part.strip()!r}")
        shares[name.strip()] = share
    return shares


def format_of(name: str | None, option: str) -> Format | None:
    """Read ``--dtype`` or ``--kv-dtype``."""
    from traceanalyzer.model import FORMATS, format_named

    if name is None:
        return None
    known = format_named(name)
    if known is None:
        raise click.UsageError(f"{option} {name} is not known; there are {', '.join(FORMATS)}")
    return known
