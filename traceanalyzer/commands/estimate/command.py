"""``traceanalyzer estimate``: TTFT, TPOT and tokens/s of a model on GPUs, without running it."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import reads_pipes, show_warnings
from traceanalyzer.cli.forms import Form, json_form, show
from traceanalyzer.cli.plotting import plot_option_of
from traceanalyzer.commands.estimate.options import EstimateOptions, estimate_options, request_of


@click.command()
@estimate_options
@plot_option_of("Draw what limits a step over the batch")
@click.option("--limit", type=click.IntRange(min=0), default=12, show_default=True, help="Ops shown; 0 shows all.")
@json_form
@reads_pipes
def estimate(options: EstimateOptions, plot: Path | None, limit: int, form: Form) -> None:
    """Estimate TTFT, TPOT, tokens/s and memory of a model on GPUs, from the work of every op.

    Times are max(FLOP / peak, bytes / bandwidth) with efficiencies, summed over ops and layers; chunked prefill is
    simulated step by step. Every figure comes with its assumptions and with the error of such estimates so far.
    """
    from traceanalyzer.commands.estimate import view
    from traceanalyzer.commands.estimate.answer import answer
    from traceanalyzer.commands.estimate.efficiencies import EstimateError
    from traceanalyzer.commands.estimate.plot import time_by_bound
    from traceanalyzer.model import ModelError

    try:
        results = answer(*request_of(options))
    except (EstimateError, ModelError) as error:
        raise click.ClickException(str(error)) from error
    show_warnings(results.document.warnings)
    show(
        form,
        results.document,
        render=lambda width: view.render(results, width, limit),
        plot=(plot, lambda: time_by_bound(results.estimates[0])),
    )
