"""``traceanalyzer hotspots``: where the kernel time goes."""

from __future__ import annotations

import click

from traceanalyzer.cli.common import (
    emit_csv,
    emit_json,
    open_one,
    paths_argument,
    rank_option,
    refuse_both,
    show_warnings,
    table_options,
    warnings_of,
)

GROUPINGS = ("kernel", "role", "family")
PHASES = ("decode", "prefill", "mixed", "dummy", "unknown")


@click.command()
@paths_argument
@click.option("--by", type=click.Choice(GROUPINGS), default="kernel", show_default=True, help="What a row is.")
@click.option("--phase", type=click.Choice(PHASES), help="Only the complete steps of this phase.")
@click.option("--step", type=click.IntRange(min=0), help="Only the step of this index, as `ingest` numbers them.")
@rank_option
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows shown; 0 shows all.")
@table_options
def hotspots(
    paths: tuple[str, ...],
    by: str,
    phase: str | None,
    step: int | None,
    rank: int | None,
    limit: int,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Rank kernels by total time, with count, mean, share, percentiles, tile and time per step."""
    from traceanalyzer.analysis.advice import advice
    from traceanalyzer.analysis.hotspots import hotspots as rank_kernels
    from traceanalyzer.report import hotspots as report
    from traceanalyzer.report.console import console

    refuse_both(as_json, as_csv)
    trace = open_one(paths, rank=rank, no_cache=no_cache)
    found = rank_kernels(trace, by=by, phase=phase, step=step)
    show_warnings(warnings_of(trace))
    if as_csv:
        emit_csv(report.CSV_COLUMNS, report.document(found, [])["rows"])
        return
    findings = advice(trace, phase=phase, step=step)
    if as_json:
        emit_json(report.document(found, findings))
        return
    screen = console()
    screen.print(report.render(found, findings, by, limit or found.rows.height, screen.width))
