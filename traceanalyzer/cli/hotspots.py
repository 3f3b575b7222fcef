"""``traceanalyzer hotspots``: where the kernel time goes."""

from __future__ import annotations

import click

from traceanalyzer.cli.common import analysis_options, emit_json, open_one, show_warnings

GROUPINGS = ("kernel", "role", "family")
PHASES = ("decode", "prefill", "mixed", "dummy", "unknown")


@click.command()
@analysis_options
@click.option("--by", type=click.Choice(GROUPINGS), default="kernel", show_default=True, help="What a row is.")
@click.option("--phase", type=click.Choice(PHASES), help="Only the complete steps of this phase.")
@click.option("--rank", type=int, help="The rank to look at, where the input holds several.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows shown; 0 shows all.")
def hotspots(
    paths: tuple[str, ...], as_json: bool, no_cache: bool, by: str, phase: str | None, rank: int | None, limit: int
) -> None:
    """Rank kernels by total time, with count, mean, share and time per step."""
    from traceanalyzer.analysis.hotspots import hotspots as rank_kernels
    from traceanalyzer.report import hotspots as report
    from traceanalyzer.report.console import console
    from traceanalyzer.segment import segment

    trace = open_one(paths, rank=rank, no_cache=no_cache)
    found = rank_kernels(trace, by=by, phase=phase)
    show_warnings([*trace.metadata.warnings, *segment(trace).warnings])
    if as_json:
        emit_json(report.document(found))
        return
    screen = console()
    screen.print(report.render(found, by, limit or found.rows.height, screen.width))
