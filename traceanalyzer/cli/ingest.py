"""``traceanalyzer ingest``: read traces and print the overview."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import analysis_options, emit_json, open_inputs, show_warnings, warnings_of


@click.command()
@analysis_options
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the ingested frames (Parquet) in this directory; it can be given to every command.",
)
def ingest(paths: tuple[str, ...], as_json: bool, no_cache: bool, output: Path | None) -> None:
    """Read traces, find steps and transformer blocks, and print an overview.

    PATH is a trace (.json, .json.gz), a directory with one trace a rank, an archive, or an ingested store.
    """
    from traceanalyzer.analysis.summary import engine_of, timelines
    from traceanalyzer.report import summary
    from traceanalyzer.report.console import console

    traces = open_inputs(paths, no_cache=no_cache, output=output)
    found = [timeline for trace in traces for timeline in timelines(trace)]
    engine = engine_of(traces)
    warnings = [*traces.warnings, *(warning for trace in traces for warning in warnings_of(trace))]
    show_warnings(warnings)
    if as_json:
        emit_json(summary.document(traces, engine, found, warnings))
        return
    screen = console()
    screen.print(summary.render(engine, found, screen, next_path=paths[0]))
