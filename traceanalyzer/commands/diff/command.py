"""``traceanalyzer diff``: what changed between two traces, role by role."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import (
    limit_option,
    open_one,
    phase_option,
    rank_option,
    reads_pipes,
    require_phase,
    show_warnings,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option


@click.command()
@click.argument("before")
@click.argument("after")
@phase_option
@rank_option
@limit_option(20)
@plot_option
@form_options
@reads_pipes
def diff(
    before: str,
    after: str,
    phase: str | None,
    rank: int | None,
    limit: int,
    plot: Path | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Compare two traces of one model: the change of the time per step, by role; it sums to the whole change.

    Kernels are paired by role and position, not by name.
    """
    from traceanalyzer.commands.diff import view
    from traceanalyzer.commands.diff.compute import diff as compare
    from traceanalyzer.commands.diff.plot import change_by_role
    from traceanalyzer.commands.diff.result import DiffRow
    from traceanalyzer.declare import csv_columns

    sides = [open_one([path], rank=rank, no_cache=no_cache) for path in (before, after)]
    for side in sides:
        require_phase(side, phase)
    comparison = compare(sides[0], sides[1], phase=phase)
    show_warnings([*warnings_of(sides[0]), *warnings_of(sides[1]), *comparison.warnings])
    answer = view.document(comparison)
    show(
        form,
        answer,
        csv=(csv_columns(DiffRow), answer.rows),
        render=lambda width: view.render(answer, limit, width),
        plot=(plot, lambda: change_by_role(comparison)),
    )
