"""``traceanalyzer hotspots``: which kernels, roles or families the time goes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import (
    limit_option,
    open_one,
    paths_argument,
    phase_option,
    rank_option,
    refuse_other_phase,
    require_phase,
    show_warnings,
    step_option,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option
from traceanalyzer.words import GROUPINGS

if TYPE_CHECKING:
    from traceanalyzer.commands.hotspots.compute import Hotspots
    from traceanalyzer.roofline.bounds import Bound
    from traceanalyzer.trace import Trace

MOST_BARS = 30
"""Bars that a plot has at most."""


@click.command()
@paths_argument
@click.option("--by", type=click.Choice(GROUPINGS), default="kernel", show_default=True, help="What a row is.")
@phase_option
@step_option
@rank_option
@limit_option(20)
@click.option(
    "--triton-cache",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The TRITON_CACHE_DIR of the server: adds tile, warps, stages, registers and spills of its kernels.",
)
@click.option("--model", help="A built-in name or a config.json: adds what limits a row, share of roof and headroom.")
@click.option("--gpu", help="The GPU whose roofs count, where the trace does not tell; `gpus` lists those known.")
@plot_option
@form_options
def hotspots(
    paths: tuple[str, ...],
    by: str,
    phase: str | None,
    step: int | None,
    rank: int | None,
    limit: int,
    triton_cache: Path | None,
    model: str | None,
    gpu: str | None,
    plot: Path | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Rank kernels by total time, with count, mean, share, percentiles, tile and time per step.

    With --model or --gpu the order is by headroom: time per step above the roofline's floor.
    """
    from traceanalyzer.commands.hotspots import view
    from traceanalyzer.commands.hotspots.advice import advice
    from traceanalyzer.commands.hotspots.compute import hotspots as rank_kernels
    from traceanalyzer.commands.hotspots.plot import kernels_by_time
    from traceanalyzer.commands.hotspots.result import HotspotRow
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.roofline.triton_cache import compiled_kernels, spill_findings

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    refuse_other_phase(trace, step, phase)
    require_phase(trace, None if step is not None else phase)
    try:
        ranking = rank_kernels(trace, by=by, phase=phase, step=step)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    compiled = compiled_kernels(trace, triton_cache) if triton_cache else {}
    bounds: dict[str, Bound] = {}
    if model or gpu:
        ranking, bounds = with_bounds(trace, ranking, by, step, (model, gpu))
    show_warnings(warnings_of(trace))
    spills = spill_findings(ranking.rows, compiled) if by == "kernel" else []
    findings = [] if form == "csv" else [*spills, *advice(trace, phase=phase, step=step)]
    answer = view.document(ranking, findings, compiled, bounds)
    shown = limit or len(answer.rows)
    show(
        form,
        answer,
        csv=(csv_columns(HotspotRow), answer.rows),
        render=lambda width: view.render(answer, ranking, by, limit=shown, width=width, step=step),
        plot=(plot, lambda: kernels_by_time(ranking, by, limit=min(limit or MOST_BARS, MOST_BARS))),
    )


def with_bounds(
    trace: Trace, ranking: Hotspots, by: str, step: int | None, stated: tuple[str | None, str | None]
) -> tuple[Hotspots, dict[str, Bound]]:
    """Return the ranking by headroom, and the bound of each group.

    Args:
        trace: the trace.
        ranking: the ranking by time.
        by: what a row is.
        step: the step looked at, if only one.
        stated: model and GPU as the user states them.

    Raises:
        click.UsageError: model or GPU is unknown, or the model does not fit what is stated of it.
    """
    from traceanalyzer.cli.request_options import given_gpu, given_model
    from traceanalyzer.commands.hotspots.headroom import by_headroom
    from traceanalyzer.roofline import Request, RooflineError, roofline
    from traceanalyzer.roofline.bounds import bounds_by

    request = Request(
        model=given_model(stated[0]),
        gpu=given_gpu(stated[1], None),
        phase=ranking.phase,
        step=step,
        every_phase=True,
    )
    try:
        bounds = bounds_by(roofline(trace, request), by)
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    return by_headroom(ranking, bounds), bounds
