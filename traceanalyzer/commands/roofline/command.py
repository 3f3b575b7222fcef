"""``traceanalyzer roofline``: what limits each kind of work, how far it is from its roof, what could be saved."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import (
    limit_option,
    open_one,
    paths_argument,
    rank_option,
    refuse_other_phase,
    require_phase,
    show_warnings,
    step_option,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option_of
from traceanalyzer.cli.request_options import Given, request_options


@click.command()
@paths_argument
@request_options
@step_option
@click.option(
    "--assume",
    multiple=True,
    metavar="ROLE=SHARE",
    help="Show the step if this role reached this share of its roof: moe_down=0.8, attention:full=0.7. Repeatable.",
)
@plot_option_of("Draw the roofline")
@limit_option(24)
@rank_option
@form_options
def roofline(
    paths: tuple[str, ...],
    given: Given,
    step: int | None,
    assume: tuple[str, ...],
    plot: Path | None,
    limit: int,
    rank: int | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Tell what limits each kind of work, how far it is from that roof, and what could be saved.

    Model and GPU are recognised where the trace allows it; --model and --gpu state them.
    """
    from traceanalyzer.commands.roofline import view
    from traceanalyzer.commands.roofline.plot import roofline_figure
    from traceanalyzer.commands.roofline.result import RooflineRow
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.roofline import RooflineError, parse_assumption, what_if
    from traceanalyzer.roofline import roofline as analyse

    request = given.request(step=step, no_cache=no_cache)
    try:
        assumptions = [parse_assumption(text) for text in assume]
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        refuse_other_phase(trace, step, given.phase)
        require_phase(trace, None if step is not None else given.phase)
        analysed = analyse(trace, request)
        assumed = what_if(analysed, assumptions) if assumptions else None
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    show_warnings(warnings_of(trace))
    answer = view.document(analysed, assumed)
    show(
        form,
        answer,
        csv=(csv_columns(RooflineRow), answer.rows),
        render=lambda width: view.render(analysed, assumed, limit or len(analysed.rows), width),
        plot=(plot, lambda: roofline_figure(analysed)),
    )
