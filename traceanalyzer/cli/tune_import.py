"""``traceanalyzer tune import``: measured tiles from files of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import emit_json, json_option, show_warnings


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--top-k", type=click.IntRange(min=1), help="Experts a token, where the file names the concurrency only.")
@json_option
def import_(file: Path, top_k: int | None, as_json: bool) -> None:
    """Read measured tiles from FILE: a sweep of ours, or a log of 'conc=1 bm=16 bn=32 ...' lines."""
    from traceanalyzer.report import tune as report
    from traceanalyzer.report.console import console
    from traceanalyzer.tune.imports import import_points

    sweep = import_points(file, top_k)
    show_warnings(sweep.warnings)
    if as_json:
        emit_json(report.points_document(sweep))
        return
    out = console()
    out.print(report.render_points(sweep, out.width))
