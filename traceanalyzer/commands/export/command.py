"""``traceanalyzer export``: the trace with its steps for Perfetto; tables as CSV, Parquet or Excel."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.command_groups import CommandGroup
from traceanalyzer.cli.common import (
    no_cache_option,
    open_one,
    paths_argument,
    rank_option,
    require_phase,
    show_warnings,
    tell,
    warnings_of,
)
from traceanalyzer.cli.request_options import Given, request_options
from traceanalyzer.discovery import Declared, bare_analyses

TABLES = ("steps", "blocks", "kernels", "roles", "gaps", "roofline", "events")
DEFAULT = TABLES[:-1]
"""Tables written without being asked for; ``events`` has a row per kernel."""


def command_of_format(form: Declared) -> click.Command:
    """Return the command that writes tables in a format; the format is imported when it runs."""

    @click.command(form.name, help=f"Write {form.summary}.\n\n{form.description()}")
    @paths_argument
    @click.option(
        "--table",
        "tables",
        multiple=True,
        type=click.Choice([*TABLES, *sorted(bare_analyses())]),
        help=f"Only this table; repeatable. Without it {', '.join(DEFAULT)}; events has a row per kernel.",
    )
    @request_options
    @rank_option
    @no_cache_option
    @click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Where to write.")
    def run(
        output: Path, paths: tuple[str, ...], tables: tuple[str, ...], given: Given, rank: int | None, no_cache: bool
    ) -> None:
        from traceanalyzer.commands.export.tables import tables_of
        from traceanalyzer.roofline import RooflineError

        trace = open_one(paths, rank=rank, no_cache=no_cache)
        require_phase(trace, given.phase)
        show_warnings(warnings_of(trace))
        try:
            made = tables_of(trace, tables or DEFAULT, given.request(no_cache=no_cache))
        except RooflineError as error:
            raise click.UsageError(str(error)) from error
        if not made:
            raise click.UsageError("no roofline can be made of this trace; pass --model and --gpu")
        for path in form.load()(made, output):
            tell(f"wrote {path}")

    return run


@click.group(cls=CommandGroup, words="export", package="traceanalyzer.commands.export.formats", maker=command_of_format)
def export() -> None:
    """Write results to files for other programs."""


@export.command(short_help="the trace with tracks for steps, blocks, roles, idle gaps and findings")
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
    from traceanalyzer.commands.export.formats.perfetto import export as write

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    show_warnings(warnings_of(trace))
    own = write(trace, output)
    how = "" if own else ", events from the ingested columns (without flows and counters)"
    tell(f"wrote {output}{how}: open it in https://ui.perfetto.dev")
