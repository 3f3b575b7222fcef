"""``traceanalyzer idle``: when the GPU waits, and what the host does meanwhile."""

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
from traceanalyzer.cli.plotting import plot_option, save_plot


@click.command()
@paths_argument
@rank_option
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Rows shown; 0 shows all.")
@plot_option
@table_options
def idle(
    paths: tuple[str, ...],
    rank: int | None,
    limit: int,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Show the gaps between and inside steps, and the host work that fills them."""
    from traceanalyzer.commands.idle import view
    from traceanalyzer.commands.idle.compute import idle as idle_time
    from traceanalyzer.commands.idle.result import IdleGap
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.show.terminal import console

    refuse_both(as_json, as_csv)
    trace = open_one(paths, rank=rank, no_cache=no_cache)
    waits = idle_time(trace)
    show_warnings([*warnings_of(trace), *waits.warnings])
    if plot is not None:
        from traceanalyzer.commands.idle.plot import gaps_by_kernel

        save_plot(gaps_by_kernel(waits), plot)
    answer = view.document(waits)
    if as_json:
        emit_json(answer)
    elif as_csv:
        emit_csv(csv_columns(IdleGap), answer.gaps)
    else:
        screen = console()
        screen.print(view.render(answer, limit, screen.width))
