"""Commands for analyses that declare themselves: one trace in, one frame out, shown as a table, JSON or CSV."""

from __future__ import annotations

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
from traceanalyzer.discovery import Declared


def command_of_analysis(analysis: Declared) -> click.Command:
    """Return the command of an analysis; what it computes is imported when it runs."""

    @click.command(analysis.name, help=analysis.description())
    @paths_argument
    @rank_option
    @click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows shown; 0 shows all.")
    @table_options
    def run(paths: tuple[str, ...], rank: int | None, limit: int, as_json: bool, as_csv: bool, no_cache: bool) -> None:
        from traceanalyzer.show import frame_table as frame_table
        from traceanalyzer.show.terminal import console

        refuse_both(as_json, as_csv)
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        frame = analysis.load()(trace)
        show_warnings(warnings_of(trace))
        if as_json:
            emit_json(report.document(analysis.name, frame))
        elif as_csv:
            emit_csv(*report.in_us(frame))
        else:
            screen = console()
            screen.print(report.render(frame, limit, screen.width))

    return run
