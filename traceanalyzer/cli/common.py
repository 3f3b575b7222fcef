"""What every analysis command shares: its arguments, opening traces, showing warnings, printing JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from traceanalyzer.problems import TraceWarning
    from traceanalyzer.trace import Trace

F = TypeVar("F", bound=Callable[..., Any])

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
"""Traces, ingested stores, directories of ranks or archives."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")

no_cache_option = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of ingested traces.")


def analysis_options(command: F) -> F:
    """Give a command PATH..., --json and --no-cache."""
    return paths_argument(json_option(no_cache_option(command)))


def open_inputs(paths: Iterable[str], *, no_cache: bool = False) -> tuple[Trace, ...]:
    """Open every trace at the paths.

    Raises:
        TraceError: none can be used.
    """
    from traceanalyzer.report.progress import ingest_progress
    from traceanalyzer.trace import open_traces

    with ingest_progress() as progress:
        return open_traces(list(paths), cache=not no_cache, progress=progress)


def show_warnings(warnings: Iterable[TraceWarning]) -> None:
    """Print warnings on stderr, one line each."""
    from traceanalyzer.report.text import warning_line

    for warning in warnings:
        click.echo(warning_line(warning), err=True)


def emit_json(document: Any) -> None:
    """Print the one JSON document of a command on stdout."""
    import json

    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
