"""``traceanalyzer diff``: what changed between two traces, role by role."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import (
    emit_csv,
    emit_json,
    open_one,
    rank_option,
    reads_pipes,
    refuse_both,
    show_warnings,
    table_options,
    warnings_of,
)
from traceanalyzer.cli.plotting import plot_option, save_plot
from traceanalyzer.words import PHASES


@click.command()
@click.argument("before")
@click.argument("after")
@click.option("--phase", type=click.Choice(PHASES), help="Only the complete steps of this phase.")
@rank_option
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows shown; 0 shows all.")
@plot_option
@table_options
@reads_pipes
def diff(
    before: str,
    after: str,
    phase: str | None,
    rank: int | None,
    limit: int,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Compare two traces of one model: per role, the change of the step's time, summing to the whole change.

    Kernels are paired by role and position, not by name.
    """
    from traceanalyzer.commands.diff import view as report
    from traceanalyzer.commands.diff.compute import diff as compare
    from traceanalyzer.show.terminal import console

    refuse_both(as_json, as_csv)
    sides = [open_one([path], rank=rank, no_cache=no_cache) for path in (before, after)]
    found = compare(sides[0], sides[1], phase=phase)
    show_warnings([*warnings_of(sides[0]), *warnings_of(sides[1]), *found.warnings])
    if plot is not None:
        from traceanalyzer.commands.diff.plot import change_by_role

        save_plot(change_by_role(found), plot)
    if as_json:
        emit_json(report.document(found))
    elif as_csv:
        emit_csv(report.CSV_COLUMNS, report.document(found)["rows"])
    else:
        screen = console()
        screen.print(report.render(found, limit, screen.width))
