"""``traceanalyzer idle``: when the GPU waits, and what the host does meanwhile."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import limit_option, open_one, paths_argument, rank_option, show_warnings, warnings_of
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option


@click.command()
@paths_argument
@rank_option
@limit_option(10)
@plot_option
@form_options
def idle(
    paths: tuple[str, ...],
    rank: int | None,
    limit: int,
    plot: Path | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Show the gaps between and inside steps, and the host work that fills them."""
    from traceanalyzer.commands.idle import view
    from traceanalyzer.commands.idle.compute import idle as idle_time
    from traceanalyzer.commands.idle.plot import gaps_by_kernel
    from traceanalyzer.commands.idle.result import IdleGap
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.segment import segment
    from traceanalyzer.segment.opening import opening

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    waits = idle_time(trace)
    show_warnings([*warnings_of(trace), *waits.warnings])
    answer = view.document(waits)
    first = [finding.message for finding in opening(segment(trace)) if finding.code == "workload"]
    show(
        form,
        answer,
        csv=(csv_columns(IdleGap), answer.gaps),
        render=lambda width: view.render(answer, limit, width, first),
        plot=(plot, lambda: gaps_by_kernel(waits)),
    )
