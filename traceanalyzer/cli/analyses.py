"""Commands for analyses that declare themselves: one trace in, one frame out, shown as a table, JSON or CSV."""

from __future__ import annotations

import click

from traceanalyzer.cli.common import limit_option, open_one, paths_argument, rank_option, show_warnings, warnings_of
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.discovery import Declared


def command_of_analysis(analysis: Declared) -> click.Command:
    """Return the command of an analysis; what it computes is imported when it runs."""

    @click.command(analysis.name, help=analysis.description())
    @paths_argument
    @rank_option
    @limit_option(20)
    @form_options
    def run(paths: tuple[str, ...], rank: int | None, limit: int, form: Form, no_cache: bool) -> None:
        from traceanalyzer.show import frame_table

        trace = open_one(paths, rank=rank, no_cache=no_cache)
        frame = analysis.load()(trace)
        show_warnings(warnings_of(trace))
        columns, rows = frame_table.in_us(frame)
        document = {"schema": f"traceanalyzer/{analysis.name}/1", "rows": rows}
        show(form, document, csv=(columns, rows), render=lambda width: frame_table.render(frame, limit, width))

    return run
