"""``traceanalyzer tune import``: read measured tiles from files of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import json_option, limit_option, show_warnings
from traceanalyzer.commands.tune.formats import NAMES, read_sweep
from traceanalyzer.commands.tune.formats.sweep import write_sweep
from traceanalyzer.commands.tune.import_.result import TunePointsDocument
from traceanalyzer.commands.tune.options import answer
from traceanalyzer.declare import part_of


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--top-k", type=click.IntRange(min=1), help="Experts per token, if the file has only the concurrency.")
@click.option("--format", "format_name", help="Format of the file, if it is not recognised.")
@limit_option(20)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the points as a sweep file."
)
@json_option
def import_(
    file: Path, top_k: int | None, format_name: str | None, limit: int, output: Path | None, as_json: bool
) -> None:
    """Read measured tiles from FILE: a sweep file, another tuner's results, or a log of 'conc=1 bm=16 ...' lines."""
    from traceanalyzer.commands.tune.import_ import view

    if format_name is not None and format_name not in NAMES:
        raise click.UsageError(f"unknown format {format_name!r} (known: {', '.join(NAMES)})")
    sweep = read_sweep(file, top_k, format_name)
    show_warnings(sweep.warnings)
    if output is not None:
        write_sweep(output, sweep.points)
    answer(
        part_of(TunePointsDocument, sweep), as_json, lambda width: view.render(sweep, limit or len(sweep.points), width)
    )
