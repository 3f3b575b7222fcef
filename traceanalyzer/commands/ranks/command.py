"""``traceanalyzer ranks``: waiting, late ranks, pipeline stages and expert load of a job of many ranks."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import (
    emit_csv,
    emit_json,
    open_inputs,
    paths_argument,
    refuse_both,
    show_warnings,
    table_options,
)
from traceanalyzer.cli.plotting import plot_option, save_plot


@click.command()
@paths_argument
@click.option("--hta", is_flag=True, help="Also show what HolisticTraceAnalysis says about the same events.")
@click.option("--limit", type=click.IntRange(min=0), default=16, show_default=True, help="Rows shown; 0 shows all.")
@plot_option
@table_options
def ranks(
    paths: tuple[str, ...],
    hta: bool,
    limit: int,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Compare the ranks of a job: transfer and waiting of collectives, late ranks, pipeline stages, experts.

    PATH is a directory or archive with one trace per rank, or the traces themselves.
    """
    from traceanalyzer.commands.ranks import view
    from traceanalyzer.commands.ranks.compute import compare, warnings_of_job
    from traceanalyzer.commands.ranks.result import RankTime
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.show.terminal import console

    refuse_both(as_json, as_csv)
    traces = open_inputs(paths, no_cache=no_cache)
    comparison = compare(traces)
    opinion = None
    if hta:
        from traceanalyzer.commands.ranks.hta import second_opinion

        opinion = second_opinion(comparison)
    warnings = warnings_of_job(traces, comparison)
    show_warnings(warnings)
    if plot is not None:
        from traceanalyzer.commands.ranks.plot import time_by_rank

        save_plot(time_by_rank(comparison), plot)
    if as_json:
        emit_json(view.document(traces, comparison, warnings, opinion))
    elif as_csv:
        emit_csv(csv_columns(RankTime), view.per_rank(comparison))
    else:
        screen = console()
        screen.print(view.render(traces, comparison, limit, screen.width, opinion))
