"""``traceanalyzer tune plan``: which kernel of a trace to tune, on which shape, and what that is worth."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from traceanalyzer.cli.common import (
    PHASES,
    emit_json,
    json_option,
    no_cache_option,
    open_one,
    paths_argument,
    rank_option,
    show_warnings,
    warnings_of,
)


@click.command()
@paths_argument
@click.option("--model", help="A built-in name such as gpt-oss-20b, or the path of a config.json.")
@click.option("--gpu", help="The GPU, where the trace does not tell; `gpus` lists those known.")
@click.option("--gpu-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A TOML file that describes more GPUs.")  # fmt: skip
@click.option("--capture", type=click.Path(exists=True), help="The trace of the graph capture: shapes of its kernels.")
@click.option("--triton-cache", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="The TRITON_CACHE_DIR of the server: tile, warps and spills of its kernels.")  # fmt: skip
@click.option("--phase", type=click.Choice(PHASES), help="Only complete steps of this phase; decode if there are any.")
@click.option("--requests", type=click.IntRange(min=1), help="Sequences of a step, instead of what its marker says.")
@click.option("--tokens", type=click.IntRange(min=1), help="New tokens of a step.")
@click.option("--kv-tokens", type=click.IntRange(min=1), help="Tokens of all contexts together, new ones included.")
@click.option("--tp", type=click.IntRange(min=1), help="Tensor-parallel degree.")
@click.option("--pp", type=click.IntRange(min=1), help="Pipeline-parallel degree.")
@click.option("--ep", type=click.IntRange(min=1), help="Expert-parallel degree.")
@click.option("--experts-hit", type=click.FloatRange(min=0, min_open=True), help="Distinct experts a layer, if known.")
@click.option("--routing-skew", type=click.FloatRange(min=0), default=0.0, help="Zipf exponent of routing; 0: uniform.")
@rank_option
@json_option
@no_cache_option
def plan(
    paths: tuple[str, ...], model: str | None, gpu: str | None, gpu_file: Path | None, capture: str | None,
    triton_cache: Path | None, phase: str | None, requests: int | None, tokens: int | None, kv_tokens: int | None,
    tp: int | None, pp: int | None, ep: int | None, experts_hit: float | None, routing_skew: float,
    rank: int | None, as_json: bool, no_cache: bool,
) -> None:  # fmt: skip
    """Pick the kernel of a trace whose tile is worth tuning.

    The retunable kernel with most time above its roof, its shape and rows, what a win is worth at most, the commands
    to run next; and why the kernels before it are refused.
    """
    from traceanalyzer.analysis.roofline import Request, RooflineError
    from traceanalyzer.analysis.roofline.workloads import Stated
    from traceanalyzer.cli.request_options import given_gpu, given_model
    from traceanalyzer.model import Routing
    from traceanalyzer.report import tune_plan as report
    from traceanalyzer.report.console import console
    from traceanalyzer.tune.plan import plan as make_plan
    from traceanalyzer.tune.plan_commands import next_commands

    chosen_model, chosen_gpu = given_model(model), given_gpu(gpu, gpu_file)
    try:
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        request = Request(
            model=chosen_model,
            gpu=chosen_gpu,
            capture=open_one([capture], no_cache=no_cache) if capture else None,
            phase=phase,
            stated=Stated(requests, tokens, kv_tokens),
            tp=tp,
            pp=pp,
            ep=ep,
            routing=Routing(skew=routing_skew, distinct=experts_hit),
        )
        found = make_plan(trace, request, triton_cache)
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    show_warnings(warnings_of(trace))
    commands = next_commands(found, paths, _stated_options())
    if as_json:
        emit_json(report.document(found, commands))
        return
    screen = console()
    screen.print(report.render(found, screen.width))
    click.echo(report.command_lines(commands))


def _stated_options() -> dict[str, str]:
    """The options with a value that the user wrote, by name."""
    context = click.get_current_context()
    return {
        option.opts[0]: str(context.params[option.name])
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name
        and not option.is_flag
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }
