"""``traceanalyzer roofline``: what limits each kind of work, how far it is from its roof, what could be saved."""

from __future__ import annotations

from pathlib import Path

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
from traceanalyzer.cli.plotting import plot_option_of, save_plot
from traceanalyzer.cli.request_options import Given, request_options


@click.command()
@paths_argument
@request_options
@click.option("--step", type=click.IntRange(min=0), help="Only the step of this index, as `ingest` numbers them.")
@click.option(
    "--assume",
    multiple=True,
    metavar="ROLE=SHARE",
    help="Show the step if this role reached this share of its roof: moe_down=0.8, attention:full=0.7. Repeatable.",
)
@plot_option_of("Draw the roofline")
@click.option("--limit", type=click.IntRange(min=0), default=24, show_default=True, help="Rows shown; 0 shows all.")
@rank_option
@table_options
def roofline(
    paths: tuple[str, ...],
    given: Given,
    step: int | None,
    assume: tuple[str, ...],
    plot: Path | None,
    limit: int,
    rank: int | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Tell what limits each kind of work, how far it is from that roof, and what could be saved.

    Model and GPU are recognised where the trace allows it; --model and --gpu state them.
    """
    from traceanalyzer.commands.roofline import view
    from traceanalyzer.commands.roofline.result import RooflineRow
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.roofline import RooflineError, parse_assumption, what_if
    from traceanalyzer.roofline import roofline as analyse
    from traceanalyzer.show.terminal import console

    refuse_both(as_json, as_csv)
    request = given.request(step=step, no_cache=no_cache)
    try:
        assumptions = [parse_assumption(text) for text in assume]
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        analysed = analyse(trace, request)
        assumed = what_if(analysed, assumptions) if assumptions else None
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    show_warnings(warnings_of(trace))
    if plot is not None:
        from traceanalyzer.commands.roofline.plot import roofline_figure

        save_plot(roofline_figure(analysed), plot)
    if as_json:
        emit_json(view.document(analysed, assumed))
    elif as_csv:
        emit_csv(csv_columns(RooflineRow), view.rows_of_roofline(analysed))
    else:
        screen = console()
        screen.print(view.render(analysed, assumed, limit or len(analysed.rows), screen.width))
