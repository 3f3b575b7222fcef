"""``traceanalyzer blocks``: the transformer blocks of every step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import (
    of_rank,
    open_inputs,
    paths_argument,
    rank_option,
    require_phase,
    show_warnings,
    step_option,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.plotting import plot_option, save_plot
from traceanalyzer.words import PHASES

if TYPE_CHECKING:
    from traceanalyzer.segment import Segmentation


@click.command()
@paths_argument
@step_option
@click.option("--phase", type=click.Choice(PHASES), help="Only steps of this phase.")
@rank_option
@click.option("--device", type=click.IntRange(min=0), help="Only this GPU.")
@plot_option
@form_options
def blocks(
    paths: tuple[str, ...],
    step: int | None,
    phase: str | None,
    rank: int | None,
    device: int | None,
    plot: Path | None,
    form: Form,
    no_cache: bool,
) -> None:
    """Show the transformer blocks of each step: a strip of times, variants, roles, and outliers."""
    from traceanalyzer.commands.blocks import view
    from traceanalyzer.commands.blocks.result import BLOCK_COLUMNS
    from traceanalyzer.segment import segment

    opened = open_inputs(paths, no_cache=no_cache)
    traces = opened.traces if rank is None else of_rank(opened, rank)
    ranks = [(trace.rank, segment(trace).only(step=step, phase=phase, device=device)) for trace in traces]
    if (step, device) == (None, None) and all(cut.steps.is_empty() for _, cut in ranks):
        require_phase(traces[0], phase)
    if all(cut.steps.is_empty() for _, cut in ranks) and (step, phase, device) != (None, None, None):
        raise click.UsageError("no step fits --step, --phase and --device")
    warnings = [warning for trace in traces for warning in warnings_of(trace)]
    show_warnings(warnings)
    if plot is not None:
        _draw(ranks, plot)
    csv = (BLOCK_COLUMNS, view.csv_rows(ranks))
    show(form, view.document(ranks, warnings), csv=csv, render=lambda width: view.render(ranks, width))


def _draw(ranks: list[tuple[int | None, Segmentation]], plot: Path) -> None:
    """Draw the blocks of one rank.

    Raises:
        click.UsageError: there are several.
        TraceError: there are no blocks, or the file cannot be written.
    """
    from traceanalyzer.commands.blocks.plot import block_strip
    from traceanalyzer.problems import TraceError

    if len(ranks) > 1:
        raise click.UsageError(f"--plot draws one rank, and the input holds {len(ranks)} traces: pick one with --rank")
    try:
        figure = block_strip(ranks[0][1], ranks[0][0])
    except TraceError as error:
        raise TraceError(str(plot), error.reason) from error
    save_plot(figure, plot)
