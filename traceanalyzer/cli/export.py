"""``traceanalyzer export``: a trace with its steps for Perfetto, and tables as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from traceanalyzer.cli.common import (
    no_cache_option,
    open_one,
    paths_argument,
    rank_option,
    show_warnings,
    tell,
    warnings_of,
)
from traceanalyzer.cli.request_options import Given, request_options

F = TypeVar("F", bound=Callable[..., Any])
TABLES = ("steps", "blocks", "kernels", "roles", "gaps", "roofline", "events")


@click.group()
def export() -> None:
    """Write what was found to files of other programs."""


@export.command()
@paths_argument
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Such as out.json.gz."
)
@rank_option
@no_cache_option
def perfetto(paths: tuple[str, ...], output: Path, rank: int | None, no_cache: bool) -> None:
    """Write the trace with tracks for steps, blocks, roles, idle gaps and findings.

    Open the file in ui.perfetto.dev or chrome://tracing. The events of the trace stay as they are.
    """
    from traceanalyzer.report.perfetto import export as write

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    show_warnings(warnings_of(trace))
    own = write(trace, output)
    how = "" if own else ", events from the ingested columns (without flows and counters)"
    tell(f"wrote {output}{how}: open it in https://ui.perfetto.dev")


def _table_options(command: F) -> F:
    options = (
        paths_argument,
        click.option(
            "--table",
            "tables",
            multiple=True,
            type=click.Choice(TABLES),
            help="Only this table; repeatable. Without it all but events, which has a row a kernel.",
        ),
        request_options,
        rank_option,
        no_cache_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@export.command()
@_table_options
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="A directory, or one .csv file.")
def csv(output: Path, **asked: Any) -> None:
    """Write tables as CSV, times in µs: a file each."""
    from traceanalyzer.report.table_files import write_csv

    _export(write_csv, output, **asked)


@export.command()
@_table_options
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="A directory, or one .parquet file."
)
def parquet(output: Path, **asked: Any) -> None:
    """Write tables as Parquet, times in µs: a file each."""
    from traceanalyzer.report.table_files import write_parquet

    _export(write_parquet, output, **asked)


@export.command()
@_table_options
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Such as out.xlsx."
)
def xlsx(output: Path, **asked: Any) -> None:
    """Write tables as one Excel workbook, times in µs: a sheet each."""
    from traceanalyzer.report.table_files import write_xlsx

    _export(write_xlsx, output, **asked)


def _export(
    write: Callable[..., list[Path]],
    output: Path,
    *,
    paths: tuple[str, ...],
    tables: tuple[str, ...],
    given: Given,
    rank: int | None,
    no_cache: bool,
) -> None:
    from traceanalyzer.analysis.roofline import RooflineError
    from traceanalyzer.report.table_files import DEFAULT, tables_of

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    show_warnings(warnings_of(trace))
    try:
        made = tables_of(trace, tables or DEFAULT, given.request(no_cache=no_cache))
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    if not made:
        raise click.UsageError("no roofline can be made of this trace; state --model and --gpu")
    for path in write(made, output):
        tell(f"wrote {path}")
