"""What ``tune run`` answers: its document, tables, and the line format of hand-written sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.formats.seed_log import best_line, point_line
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.measure.bench import MeasuringBench
from traceanalyzer.commands.tune.measure.result import NO_MEASUREMENT, MeasuredTile, TunedProblem
from traceanalyzer.commands.tune.run.compute import JobOutcome
from traceanalyzer.commands.tune.run.result import TuneRunDocument, TuneRunProblem
from traceanalyzer.declare import part_of
from traceanalyzer.show.terminal import table

COLUMNS = ("candidate", "median", "95 % interval", "over best", "rounds", "verdict")


def document(bench: MeasuringBench, outcomes: Sequence[JobOutcome], sweep: Path | None) -> TuneRunDocument:
    """Return the JSON document of ``tune run``."""
    problems = [_problem(outcome) for outcome in outcomes]
    return part_of(TuneRunDocument, bench, sweep=None if sweep is None else str(sweep), problems=problems)


def _problem(outcome: JobOutcome) -> TuneRunProblem:
    job = outcome.job
    return part_of(
        TuneRunProblem,
        outcome,
        problem=part_of(TunedProblem, job.problem),
        concurrency=job.problem.tokens,
        routing=job.routing,
        best=outcome.best.config if outcome.best else None,
    )


def render(document: TuneRunDocument, width: int) -> Group:
    """Return each problem's candidates as a table."""
    parts: list[Any] = []
    for one in document.problems:
        routing = f", {one.routing[:40]} routing" if one.routing else ""
        what = f"{document.kernel} ({document.backend}) {one.problem.label}{routing}"
        parts += [Text(f"{what} on {document.device['name']}", style="bold"), Text()]
        parts.append(table(COLUMNS, [_row(tile) for tile in one.results], name_column=None, width=width))
        parts += [Text(f"  {tile.launch.label}: {tile.reason}") for tile in one.results if tile.reason]
        if ties := [tile.launch.label for tile in one.results if tile.verdict == "tie"]:
            parts.append(Text(f"  as fast as the best, as far as the samples tell: {'; '.join(ties)}"))
        if one.cut_short:
            parts.append(Text(f"  {one.cut_short}"))
        parts.append(Text())
    if not document.measured:
        parts.append(Text(NO_MEASUREMENT, style="bold"))
    return Group(*parts)


def _row(tile: MeasuredTile) -> tuple[str, ...]:
    return (
        tile.launch.label,
        "n/a" if tile.median_ms is None else f"{tile.median_ms:.4f} ms",
        "{:.4f}-{:.4f}".format(*tile.interval_ms) if tile.interval_ms else "n/a",
        "n/a" if tile.ratio_to_best is None else f"{tile.ratio_to_best:.3f}x",
        str(tile.rounds),
        tile.verdict,
    )


def seed_log(bench: MeasuringBench, outcomes: Sequence[JobOutcome]) -> str:
    """Return every result in the line format of hand-written sweeps, a ``BEST`` line after each batch size."""
    lines: list[str] = []
    draws = {outcome.job.routing for outcome in outcomes}
    for outcome in outcomes:
        if len(draws) > 1:
            lines.append(f"# routing {outcome.job.routing}")
        points = _points(bench, outcome)
        lines += [line for line in map(point_line, points) if line]
        best = outcome.best.config if outcome.best else None
        lines += [best_line(point) for point in points if point.config == best]
    return "\n".join(lines)


def _points(bench: MeasuringBench, outcome: JobOutcome) -> list[SweepPoint]:
    return [
        replace(
            bench.point(outcome.job.problem, outcome.job.routing, config),
            rounds=tuple(tuple(rounds[n]) for n in sorted(rounds)),
        )
        for config in outcome.job.configs
        if (rounds := outcome.samples.get(config))
    ]
