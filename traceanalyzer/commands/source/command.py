"""``traceanalyzer source``: the op, the module and the line that launched each kernel."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import (
    limit_option,
    open_one,
    paths_argument,
    phase_option,
    rank_option,
    refuse_other_phase,
    show_warnings,
    step_option,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.request_options import open_captures


@click.command()
@paths_argument
@click.option(
    "--map", "other", metavar="TRACE2", help="A recording of the same model that holds stacks: its steps explain these."
)
@click.option(
    "--capture",
    type=click.Path(exists=True),
    help="The recording of the capture of this trace's graphs, or a folder of them.",
)
@click.option(
    "--annotations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON of PyTorch's annotations by graph node id.",
)
@click.option(
    "--by",
    type=click.Choice(["kernel", "role", "line", "module"]),
    default="kernel",
    show_default=True,
    help="What a row is.",
)
@phase_option
@step_option
@rank_option
@limit_option(20)
@form_options
def source(
    paths: tuple[str, ...],
    other: str | None,
    capture: str | None,
    annotations: Path | None,
    by: str,
    phase: str | None,
    step: int | None,
    rank: int | None,
    limit: int,
    form: Form,
    no_cache: bool,
) -> None:
    """Show which op, module and line launched each kernel, also inside a graph.

    Kernels that a graph replays are explained by the recording's own prefill and mixed steps, by --map or --capture.
    """
    from traceanalyzer.commands.source import view
    from traceanalyzer.commands.source.compute import Companions, read_notes
    from traceanalyzer.commands.source.compute import source as sources
    from traceanalyzer.commands.source.result import SourceRow
    from traceanalyzer.declare import csv_columns

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    refuse_other_phase(trace, step, phase)
    companions = Companions(
        other=open_one([other], rank=rank, no_cache=no_cache) if other else None,
        captures=open_captures(capture, no_cache=no_cache),
        notes=read_notes(annotations) if annotations else None,
    )
    try:
        answer = sources(trace, by, phase, step, companions)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    show_warnings([*warnings_of(trace), *answer.warnings])
    shown = limit or len(answer.rows)
    show(
        form,
        answer,
        csv=(csv_columns(SourceRow), answer.rows),
        render=lambda width: view.render(answer, by, limit=shown, width=width),
    )
