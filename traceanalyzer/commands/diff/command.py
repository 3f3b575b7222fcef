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
    """Compare two traces of one model: the change of the time per step, by role; it sums to the whole change.

    Kernels are paired by role and position, not by name.
    """
    from traceanalyzer.commands.diff import view
    from traceanalyzer.commands.diff.compute import diff as compare
    from traceanalyzer.commands.diff.result import DiffRow
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.show.terminal import console

    refuse_both(as_json, as_csv)
    sides = [open_one([path], rank=rank, no_cache=no_cache) for path in (before, after)]
    comparison = compare(sides[0], sides[1], phase=phase)
    show_warnings([*warnings_of(sides[0]), *warnings_of(sides[1]), *comparison.warnings])
    if plot is not None:
        from traceanalyzer.commands.diff.plot import change_by_role

        save_plot(change_by_role(comparison), plot)
    answer = view.document(comparison)
    if as_json:
        emit_json(answer)
    elif as_csv:
        emit_csv(csv_columns(DiffRow), answer.rows)
    else:
        screen = console()
        screen.print(view.render(answer, limit, screen.width))
