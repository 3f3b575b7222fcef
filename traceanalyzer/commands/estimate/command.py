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
    rank_option,
    reads_pipes,
    show_warnings,
)
from traceanalyzer.cli.plotting import plot_option_of, save_plot
from traceanalyzer.cli.request_options import gpu_file_option
from traceanalyzer.commands.estimate.options import EstimateOptions, request_of

if TYPE_CHECKING:
    from traceanalyzer.commands.estimate.compute import DeploymentEstimate

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
    help="Tokens per step: decodes first, prompts fill the rest.",
)
@click.option(
    "--gpu-memory-utilization",
    "utilisation",
    type=FiniteRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Share of a GPU's memory that the engine uses.",
)
@click.option("--gpu-fit", is_flag=True, help="Fail if the layout cannot hold the weights.")
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
@plot_option_of("Draw what limits a step over the batch")
@click.option("--limit", type=click.IntRange(min=0), default=12, show_default=True, help="Ops shown; 0 shows all.")
@gpu_file_option
@rank_option
@json_option
@no_cache_option
@reads_pipes
def estimate(plot: Path | None, as_json: bool, limit: int, **options: Any) -> None:
    """Estimate TTFT, TPOT, tokens/s and memory of a model on GPUs, from the work of every op.

    Times are max(FLOP / peak, bytes / bandwidth) with efficiencies, summed over ops and layers; chunked prefill is
    simulated step by step. Every figure comes with what it rests on and how far off such estimates were.
    """
    from traceanalyzer.commands.estimate import view
    from traceanalyzer.commands.estimate.answer import answer
    from traceanalyzer.commands.estimate.estimate_document import document
    from traceanalyzer.commands.estimate.estimate_error import EstimateError
    from traceanalyzer.model import ModelError
    from traceanalyzer.show.terminal import console

    try:
        request, told = request_of(EstimateOptions(**options))
        results = answer(request)
    except (EstimateError, ModelError) as error:
        raise click.ClickException(str(error)) from error
    results = replace(results, warnings=(*told, *results.warnings))
    estimated = document(results)
    show_warnings(estimated.warnings)
    if plot is not None:
        _draw(results.estimates[0], plot)
    if as_json:
        emit_json(estimated)
        return
    screen = console()
    screen.print(view.render(results, estimated, screen.width, limit))


def _draw(first: DeploymentEstimate, path: Path) -> None:
    from traceanalyzer.commands.estimate.compute import mean_context, step_over_batches
    from traceanalyzer.commands.estimate.plot import time_by_bound

    rows = step_over_batches(first.deployment, mean_context(first.traffic.isl, first.traffic.osl))
    title = f"{first.deployment.architecture.name}, {first.deployment.gpu.name}"
    save_plot(time_by_bound(rows, title), path)
