"""``traceanalyzer ingest``: read traces, find steps and blocks, and print an overview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import analysis_options, emit_json, open_inputs, show_warnings, tell, warnings_of

if TYPE_CHECKING:
    from traceanalyzer.trace import TraceSet


@click.command()
@analysis_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Keep the ingested frames (Parquet) in this directory; it can be given to every command. For --engine ray "
    "also the URL of an object store.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="What reads: worker processes here, or a Ray cluster.",
)
@click.option("--address", help="Address of a Ray cluster; without it, --engine ray starts one on this machine.")
@click.option("-v", "--verbose", is_flag=True, help="Print on stderr what reading took: time, MB/s, peak memory.")
def ingest(
    paths: tuple[str, ...],
    as_json: bool,
    no_cache: bool,
    output: str | None,
    engine: str,
    address: str | None,
    verbose: bool,
) -> None:
    """Read traces, find steps and transformer blocks, and print an overview.

    PATH is a trace (.json, .json.gz), a directory with one trace per rank, an archive, or an ingested store.
    """
    from traceanalyzer.commands.ingest import view
    from traceanalyzer.commands.ingest.compute import engine_of, timelines
    from traceanalyzer.show.terminal import console

    traces = _read(paths, no_cache, output, engine, address)
    overview = [timeline for trace in traces for timeline in timelines(trace)]
    serving_engine = engine_of(traces)
    warnings = [*traces.warnings, *(warning for trace in traces for warning in warnings_of(trace))]
    show_warnings(warnings)
    if verbose:
        click.echo(view.effort_line(traces), err=True)
    if as_json:
        emit_json(view.document(traces, serving_engine, overview, warnings))
        return
    screen = console()
    next_path = _next_path(paths[0], output)
    screen.print(view.render(serving_engine, overview, screen, next_path=next_path or "DIR"), crop=False)
    if next_path is None:
        tell("what came through a pipe is not kept: with --output DIR it is")


def _next_path(path: str, output: str | None) -> str | None:
    """Return what the next command can be given to look at the same trace; None where nothing keeps it."""
    from traceanalyzer.read.input_path import input_path

    if output is not None and input_path(output).kind != "url":
        return output
    return None if input_path(path).kind == "pipe" else path


def _read(paths: tuple[str, ...], no_cache: bool, output: str | None, engine: str, address: str | None) -> TraceSet:
    if engine == "local":
        if address:
            raise click.UsageError("--address is for --engine ray")
        return open_inputs(paths, no_cache=no_cache, output=Path(output) if output else None)
    if output is None:
        raise click.UsageError("--engine ray needs --output: a directory or URL that every worker can write to")
    from traceanalyzer.read.ray_engine import ingest_with_ray
    from traceanalyzer.trace import TraceSet

    return TraceSet.from_result(ingest_with_ray(list(paths), output=output, address=address))
