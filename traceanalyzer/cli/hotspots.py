"""``traceanalyzer hotspots``: where the kernel time goes."""

from __future__ import annotations

from pathlib import Path

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
@click.option(
    "--triton-cache",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The TRITON_CACHE_DIR of the server: adds tile, warps, stages, registers and spills of its kernels.",
)
@table_options
def hotspots(
    paths: tuple[str, ...],
    by: str,
    phase: str | None,
    step: int | None,
    rank: int | None,
    limit: int,
    triton_cache: Path | None,
    as_json: bool,
    as_csv: bool,
    no_cache: bool,
) -> None:
    """Rank kernels by total time, with count, mean, share, percentiles, tile and time per step."""
    from traceanalyzer.analysis.advice import advice
    from traceanalyzer.analysis.hotspots import hotspots as rank_kernels
    from traceanalyzer.analysis.triton_cache import compiled_kernels, spill_findings
    from traceanalyzer.report import hotspots as report
    from traceanalyzer.report.console import console

    refuse_both(as_json, as_csv)
    trace = open_one(paths, rank=rank, no_cache=no_cache)
    try:
        found = rank_kernels(trace, by=by, phase=phase, step=step)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    compiled = compiled_kernels(trace, triton_cache) if triton_cache else {}
    show_warnings(warnings_of(trace))
    if as_csv:
        emit_csv(report.CSV_COLUMNS, report.document(found, [], compiled)["rows"])
        return
    spills = spill_findings(found.rows, compiled) if by == "kernel" else []
    findings = [*spills, *advice(trace, phase=phase, step=step)]
    if as_json:
        emit_json(report.document(found, findings, compiled))
        return
    screen = console()
    screen.print(report.render(found, findings, compiled, by, limit or found.rows.height, screen.width))
