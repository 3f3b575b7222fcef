"""The options of ``estimate``, each declared once, and the request that they state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import click

from traceanalyzer.cli.common import FiniteRange, no_cache_option, open_one, rank_option, warnings_of
from traceanalyzer.cli.request_options import gpu_file_option, named_gpu, named_model

if TYPE_CHECKING:
    from traceanalyzer.commands.estimate.answer import EstimateRequest
    from traceanalyzer.commands.estimate.calibrate import Observation
    from traceanalyzer.commands.estimate.deployment import Deployment
    from traceanalyzer.model import Format
    from traceanalyzer.problems import TraceWarning
    from traceanalyzer.trace import Trace

MOST_BATCHES = 64
LONGEST = 10_000_000
"""``estimate.deployment.LONGEST`` once more, as ``--help`` must not load the model."""

option = functools.partial(click.option, show_default=True)
Tokens = click.IntRange(1, LONGEST)
Degree = click.IntRange(min=1)
Share = FiniteRange(0, 1, min_open=True)
Positive = FiniteRange(min=0, min_open=True)


Text = str | None
Texts = tuple[str, ...]


@dataclass(frozen=True)
class EstimateOptions:
    """The options as typed."""

    model: Annotated[str, option("--model", required=True, help="A name such as gpt-oss-120b, or a config.json.")]
    gpu: Annotated[str, option("--gpu", required=True, help="A GPU; `gpus` lists those known.")]
    isl: Annotated[int, option("--isl", type=Tokens, default=1024, help="Tokens of a prompt.")]
    osl: Annotated[int, option("--osl", type=Tokens, default=1024, help="Tokens of an answer.")]
    batch: Annotated[Text, option("--batch", help="Requests in flight, or several with commas.  [in --slo, else 1]")]
    tp: Annotated[int, click.option("--tp", type=Degree, default=1, help="Tensor-parallel degree.")]
    pp: Annotated[int, click.option("--pp", type=Degree, default=1, help="Pipeline-parallel degree.")]
    ep: Annotated[
        int, click.option("--ep", type=Degree, default=1, help="Expert-parallel ranks; above --tp with DP attention.")
    ]
    dp: Annotated[int, click.option("--dp", type=Degree, default=1, help="Data-parallel copies.")]
    dtype: Annotated[Text, option("--dtype", help="Format of the weights: bf16, fp8, int4, mxfp4, nvfp4, ...")]
    kv_dtype: Annotated[Text, option("--kv-dtype", help="Format of the KV cache: bf16, fp8, ...")]
    max_num_batched_tokens: Annotated[
        int, option("--max-num-batched-tokens", type=Degree, default=8192, help="Tokens per step, decodes first.")
    ]
    gpu_memory_utilization: Annotated[
        float, option("--gpu-memory-utilization", type=Share, default=0.9, help="Share of GPU memory to use.")
    ]
    gpu_fit: Annotated[bool, click.option("--gpu-fit", is_flag=True, help="Fail if the weights do not fit.")]
    slo: Annotated[
        Text, option("--slo", help="Find the largest batch within ttft=2s,tpot=200ms or mlperf-llama2-70b-server, ...")
    ]
    compare_gpu: Annotated[Text, option("--compare-gpu", metavar="GPU", help="Compare with a second GPU.")]
    shares: Annotated[Text, option("--shares", help="Compute-bound shares for Amdahl's law: decode=0.7,prefill=0.85.")]
    measured_tokens_per_s: Annotated[
        float | None,
        option("--measured-tokens-per-s", type=Positive, help="Measured on --gpu, which --compare-gpu scales."),
    ]
    compare_parallel: Annotated[
        Text, option("--compare-parallel", metavar="LAYOUTS", help="Compare layouts: tp=4,pp=4,ep=4 or tp=2+pp=2,tp=4.")
    ]
    link_gbps: Annotated[
        Text, option("--link-gbps", help="GB/s between GPUs one way; LOW:HIGH for --compare-parallel.")
    ]
    ep_imbalance: Annotated[
        float | None,
        option("--ep-imbalance", type=FiniteRange(min=1), help="Load of the busiest EP rank over the mean."),
    ]
    routing_skew: Annotated[
        float | None, option("--routing-skew", type=FiniteRange(min=0), help="Zipf exponent; 0: uniform.  [0.69]")
    ]
    calibrate: Annotated[
        Text, option("--calibrate", metavar="TRACE", help="Take efficiencies from a trace of the model.")
    ]
    calibrate_serving: Annotated[
        Text, option("--calibrate-serving", metavar="RESULTS", help="Fit to serving results of this deployment.")
    ]
    select: Annotated[Texts, option("--select", multiple=True, metavar="KEY=VALUE", help="Which results to fit to.")]
    trace: Annotated[
        Text, option("--trace", metavar="TRACE", help="Predict TPOT of this trace after a hotspot got faster.")
    ]
    to_share: Annotated[
        Texts, option("--to-share", multiple=True, metavar="ROLE=SHARE", help="With --trace: moe_down=0.6 of its roof.")
    ]
    change: Annotated[
        Texts, option("--change", multiple=True, metavar="ROLE=BEFORE:AFTER", help="With --trace: a measured change.")
    ]
    roofline: Annotated[
        bool, click.option("--roofline", is_flag=True, help="A floor: kernels at the peak, launches free.")
    ]
    no_graphs: Annotated[bool, click.option("--no-graphs", is_flag=True, help="Do not pad to captured batch sizes.")]
    gpu_file: Annotated[Path | None, gpu_file_option]
    rank: Annotated[int | None, rank_option]
    no_cache: Annotated[bool, no_cache_option]


def estimate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options above; it receives them as one ``options``."""
    declared = get_type_hints(EstimateOptions, include_extras=True)

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        options = EstimateOptions(**{name: arguments.pop(name) for name in declared})
        return command(options=options, **arguments)

    for hint in reversed(declared.values()):
        wrapped = hint.__metadata__[0](wrapped)
    return wrapped


def refuse_alone(options: EstimateOptions) -> None:
    """Raise a usage error where an option is given without the one that it needs."""
    calibrated = options.calibrate or options.calibrate_serving
    rules = {
        "--shares and --measured-tokens-per-s need --compare-gpu": not options.compare_gpu
        and (options.shares or options.measured_tokens_per_s),
        "--to-share and --change need --trace": not options.trace and (options.to_share or options.change),
        "--select needs --calibrate-serving": options.select and not options.calibrate_serving,
        "--calibrate and --calibrate-serving exclude each other": options.calibrate and options.calibrate_serving,
        "--roofline leaves nothing to calibrate": options.roofline and calibrated,
    }
    for message, broken in rules.items():
        if broken:
            raise click.UsageError(message)


def request_of(options: EstimateOptions) -> tuple[EstimateRequest, list[TraceWarning]]:
    """Return what the options ask for, and warnings about the files that they name.

    Raises:
        click.UsageError: an option cannot be read, or lacks the one that it needs.
        EstimateError: the model, layout and GPU contradict each other.
    """
    from traceanalyzer.commands.estimate.answer import EstimateRequest
    from traceanalyzer.commands.estimate.deployment import EngineSettings
    from traceanalyzer.commands.estimate.efficiencies import EstimateError
    from traceanalyzer.commands.estimate.parallel import parse_layouts
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
    source: Trace | tuple[Observation, ...] | None = None
    if options.calibrate:
        source = _opened(options.calibrate, options, warnings)
    elif options.calibrate_serving:
        source = _observed(options.calibrate_serving, options, warnings)
    second_gpu = named_gpu(options.compare_gpu, options.gpu_file) if options.compare_gpu else None
    request = EstimateRequest(
        deployment=deployment,
        isl=options.isl,
        osl=options.osl,
        batches=batches,
        slo=limits,
        engine=EngineSettings(options.max_num_batched_tokens, options.gpu_memory_utilization),
        must_fit=options.gpu_fit,
        second_gpu=second_gpu,
        shares=shares,
        measured_tokens_per_s=options.measured_tokens_per_s,
        layouts=layouts,
        links=links,
        calibrate_with=source,
        faster=_opened(options.trace, options, warnings) if options.trace else None,
        to_share=options.to_share,
        changes=options.change,
        # As `roofline` shows it, unless a skew is given.
        faster_routing=ExpertRouting() if options.routing_skew is None else deployment.routing,
    )
    return request, warnings


def _deployment(options: EstimateOptions, link_gbps: float | None) -> Deployment:
    from traceanalyzer.commands.estimate.deployment import ROUTING_SKEW, Deployment
    from traceanalyzer.commands.estimate.efficiencies import (
        ROOFLINE,
        default_efficiencies,
        default_link,
        measured_link,
    )
    from traceanalyzer.commands.estimate.parallel import layout
    from traceanalyzer.model import ExpertRouting, with_formats

    weights, kv = format_of(options.dtype, "--dtype"), format_of(options.kv_dtype, "--kv-dtype")
    architecture = with_formats(named_model(options.model), weights=weights, kv=kv)
    gpu = named_gpu(options.gpu, options.gpu_file)
    return Deployment(
        architecture=architecture,
        gpu=gpu,
        efficiencies=ROOFLINE if options.roofline else default_efficiencies(gpu),
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


def _observed(path: str, options: EstimateOptions, warnings: list[TraceWarning]) -> tuple[Observation, ...]:
    from traceanalyzer.commands.estimate.calibrate import observations, one_series
    from traceanalyzer.serving.grouping import select
    from traceanalyzer.serving.read import read
    from traceanalyzer.serving.result_checks import check, failed

    results = read(path)
    chosen = one_series(select(results.results, options.select, "--select"))
    warnings += [*results.warnings, *(warning for result in chosen for warning in check(result)), *failed(chosen)]
    # The default of --osl says nothing about the results.
    stated = click.get_current_context().get_parameter_source("osl")
    return observations(
        chosen, options.isl, options.osl if stated is not None and stated.name == "COMMANDLINE" else None
    )


def batches_of(text: str | None) -> tuple[int, ...]:
    """Read ``--batch``: numbers of requests with commas; none where it is not given."""
    from traceanalyzer.commands.estimate.deployment import MOST_SEQUENCES
    from traceanalyzer.commands.estimate.efficiencies import EstimateError

    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 1 <= int(part) <= MOST_SEQUENCES for part in parts) or len(parts) > MOST_BATCHES:
        raise EstimateError(
            f"--batch is a number of requests from 1 to {MOST_SEQUENCES:,}, or several with commas, not {text!r}"
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def links_of(text: str | None, *, several: bool) -> tuple[float, ...]:
    """Read ``--link-gbps``: one bandwidth, or LOW:HIGH where several may be compared."""
    from traceanalyzer.commands.estimate.efficiencies import EstimateError
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
        raise EstimateError("--link-gbps LOW:HIGH needs --compare-parallel")
    return rates


def shares_of(text: str | None) -> dict[str, float]:
    """Read ``--shares``, such as ``decode=0.7,prefill=0.85``."""
    from traceanalyzer.commands.estimate.efficiencies import EstimateError

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
        raise click.UsageError(f"{option} {name} is unknown; known are {', '.join(FORMATS)}")
    return known
