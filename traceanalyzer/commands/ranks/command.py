"""``traceanalyzer ranks``: waiting, late ranks, pipeline stages and expert load of a job of many ranks."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import limit_option, open_inputs, paths_argument, show_warnings
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option


@click.command()
@paths_argument
@click.option("--hta", is_flag=True, help="Also show what HolisticTraceAnalysis says about the same events.")
@limit_option(16)
@plot_option
@form_options
def ranks(
    paths: tuple[str, ...],
    hta: bool,
    limit: int,
    plot: Path | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Compare the ranks of a job: transfer and waiting of collectives, late ranks, pipeline stages, experts.

    PATH is a directory or archive with one trace per rank, or the traces themselves.
    """
    from traceanalyzer.commands.ranks import view
    from traceanalyzer.commands.ranks.compute import compare, warnings_of_job
    from traceanalyzer.commands.ranks.plot import time_by_rank
    from traceanalyzer.commands.ranks.result import RankTime
    from traceanalyzer.declare import csv_columns

    traces = open_inputs(paths, no_cache=no_cache)
    comparison = compare(traces)
    opinion = None
    if hta:
        from traceanalyzer.commands.ranks.hta import second_opinion

        opinion = second_opinion(comparison)
    warnings = warnings_of_job(traces, comparison)
    show_warnings(warnings)
    show(
        form,
        view.document(traces, comparison, warnings, opinion),
        csv=(csv_columns(RankTime), view.per_rank(comparison)),
        render=lambda width: view.render(traces, comparison, limit, width, opinion),
        plot=(plot, lambda: time_by_rank(comparison)),
    )
