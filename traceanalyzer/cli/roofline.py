"""``traceanalyzer roofline``: how far each kind of work is from what the GPU allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import (
    emit_csv,
    emit_json,
    open_one,
    paths_argument,
    rank_option,
    refuse_both,
    show_warnings,
    table_options,
    warnings_of,
)
from traceanalyzer.cli.hotspots import PHASES

if TYPE_CHECKING:
    from traceanalyzer.hardware import Gpu
    from traceanalyzer.model import Architecture

PLOT_FORMATS = (".png", ".svg", ".pdf")


@click.command()
@paths_argument
@click.option("--model", help="A built-in name such as gpt-oss-20b, or the path of a config.json.")
@click.option("--gpu", help="The GPU, where the trace does not tell; `gpus` lists those known.")
@click.option(
    "--gpu-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file that describes more GPUs; they come before the built-in ones.",
)
@click.option("--capture", type=click.Path(exists=True), help="The trace of the graph capture: shapes of its kernels.")
@click.option("--phase", type=click.Choice(PHASES), help="Only complete steps of this phase; decode if there are any.")
@click.option("--step", type=click.IntRange(min=0), help="Only the step of this index, as `ingest` numbers them.")
@click.option("--requests", type=click.IntRange(min=1), help="Sequences of a step, instead of what its marker says.")
@click.option("--tokens", type=click.IntRange(min=1), help="New tokens of a step.")
@click.option("--kv-tokens", type=click.IntRange(min=1), help="Tokens of all contexts together, new ones included.")
@click.option("--tp", type=click.IntRange(min=1), help="Tensor-parallel degree.")
@click.option("--pp", type=click.IntRange(min=1), help="Pipeline-parallel degree.")
@click.option("--ep", type=click.IntRange(min=1), help="Expert-parallel degree.")
@click.option("--experts-hit", type=click.FloatRange(min=0, min_open=True), help="Distinct experts a layer, if known.")
@click.option("--routing-skew", type=click.FloatRange(min=0), default=0.0, help="Zipf exponent of routing; 0: uniform.")
@click.option(
    "--assume",
    multiple=True,
    metavar="ROLE=SHARE",
    help="Show the step if this role reached this share of its roof: moe_down=0.8, attention:full=0.7. Repeatable.",
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the roofline: .png, .svg or .pdf.")
@click.option("--limit", type=click.IntRange(min=0), default=24, show_default=True, help="Rows shown; 0 shows all.")
@rank_option
@table_options
def roofline(
    paths: tuple[str, ...],
    model: str | None,
    gpu: str | None,
    gpu_file: Path | None,
    capture: str | None,
    phase: str | None,
    step: int | None,
    requests: int | None,
    tokens: int | None,
    kv_tokens: int | None,
    tp: int | None,
    pp: int | None,
    ep: int | None,
    experts_hit: float | None,
    routing_skew: float,
    assume: tuple[str, ...],
    plot: Path | None,
    limit: int,
    rank: int | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Tell what each kind of work is bound by, how far it is from that roof, and what could be won.

    Model and GPU are recognised where the trace allows it; --model and --gpu state them.
    """
    from traceanalyzer.analysis.roofline import Request, RooflineError, parse_assumption, what_if
    from traceanalyzer.analysis.roofline import roofline as analyse
    from traceanalyzer.analysis.roofline.workloads import Stated
    from traceanalyzer.model import Routing
    from traceanalyzer.report import roofline as report
    from traceanalyzer.report.console import console

    refuse_both(as_json, as_csv)
    if plot is not None and plot.suffix.lower() not in PLOT_FORMATS:
        raise click.UsageError(f"--plot writes {', '.join(PLOT_FORMATS)}, not {plot.suffix or 'a file without ending'}")
    chosen_model, chosen_gpu = given_model(model), given_gpu(gpu, gpu_file)
    try:
        assumptions = [parse_assumption(text) for text in assume]
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        request = Request(
            model=chosen_model,
            gpu=chosen_gpu,
            capture=open_one([capture], no_cache=no_cache) if capture else None,
            phase=phase,
            step=step,
            stated=Stated(requests, tokens, kv_tokens),
            tp=tp,
            pp=pp,
            ep=ep,
            routing=Routing(skew=routing_skew, distinct=experts_hit),
        )
        found = analyse(trace, request)
        assumed = what_if(found, assumptions) if assumptions else None
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    show_warnings(warnings_of(trace))
    if plot is not None:
        from traceanalyzer.report.roofline_plot import draw

        draw(found, plot)
        click.echo(f"wrote {plot}", err=True)
    if as_json:
        emit_json(report.document(found, assumed))
    elif as_csv:
        emit_csv(report.CSV_COLUMNS, report.csv_rows(found))
    else:
        screen = console()
        screen.print(report.render(found, assumed, limit or len(found.rows), screen.width))


def given_model(model: str | None) -> Architecture | None:
    """Return the model that the user names, if any.

    Raises:
        click.UsageError: it is neither built in nor a config.json that can be read.
    """
    if model is None:
        return None
    from traceanalyzer.model import ModelError, load

    try:
        return load(model)
    except ModelError as error:
        raise click.UsageError(str(error)) from error


def given_gpu(gpu: str | None, gpu_file: Path | None) -> Gpu | None:
    """Return the GPU that the user names, or the only one of a file without a name.

    Raises:
        click.UsageError: it is not known, or the file is not to be used.
    """
    if gpu is None and gpu_file is None:
        return None
    from traceanalyzer.hardware import HardwareError, find_gpu, known_gpus, read_gpus

    try:
        own = read_gpus(gpu_file) if gpu_file else ()
        if gpu is None:
            if len(own) != 1:
                raise HardwareError(f"{gpu_file} describes {len(own)} GPUs: name one with --gpu")
            return own[0]
        return find_gpu(gpu, (*own, *known_gpus()))
    except HardwareError as error:
        raise click.UsageError(str(error)) from error
