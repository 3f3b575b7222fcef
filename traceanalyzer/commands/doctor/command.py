"""``traceanalyzer doctor``: what is wrong with a trace file, and a valid copy of it."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import emit_json, json_option, reads_pipes


@click.command()
@click.argument("path")
@click.option(
    "--repair",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Write a valid copy with every event that can be read; gzip if the name ends in .gz.",
)
@json_option
@reads_pipes
def doctor(path: str, repair: Path | None, as_json: bool) -> None:
    """List every problem of a trace file: where it is, how many events it concerns, what it does to results.

    Exit status 1 when the file cannot be analysed at all.
    """
    from traceanalyzer.commands.doctor.compute import examine
    from traceanalyzer.commands.doctor.view import lines

    diagnosis = examine(path, repair)
    if as_json:
        emit_json(diagnosis)
    else:
        for line in lines(path, diagnosis):
            click.echo(line)
    if not diagnosis.usable:
        raise click.exceptions.Exit(1)
