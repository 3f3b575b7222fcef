"""What ``tune run`` answers, as JSON, as tables, and in the line format of hand-written sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.formats.seed_lines import best_line, point_line
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.measure.bench import MeasuringBench
from traceanalyzer.commands.tune.measure.race import CandidateResult
from traceanalyzer.commands.tune.measure.result import TunedProblem
from traceanalyzer.commands.tune.measure.view import NO_MEASUREMENT, bench_fields, measured_tile
from traceanalyzer.commands.tune.run.compute import JobOutcome
from traceanalyzer.commands.tune.run.result import TuneRunDocument, TuneRunProblem
from traceanalyzer.declare import part_of
from traceanalyzer.show.terminal import table

COLUMNS = ("candidate", "median", "95 % interval", "over best", "rounds", "verdict")


def document(bench: MeasuringBench, outcomes: Sequence[JobOutcome], sweep: Path | None) -> TuneRunDocument:
    """Return the JSON document of ``tune run``."""
    return TuneRunDocument(
        **bench_fields(bench),
        sweep=None if sweep is None else str(sweep),
        problems=[_problem(outcome) for outcome in outcomes],
    )


def _problem(outcome: JobOutcome) -> TuneRunProblem:
    return part_of(
        TuneRunProblem,
        outcome,
        problem=part_of(TunedProblem, outcome.job.problem),
        concurrency=outcome.job.problem.tokens,
        routing=outcome.job.routing,
        best=outcome.best.config.to_dict() if outcome.best else None,
        results=[measured_tile(result) for result in outcome.results],
    )


def render(bench: MeasuringBench, outcomes: Sequence[JobOutcome], width: int) -> Group:
    """Return each problem's candidates as a table."""
    parts: list[Any] = []
    for outcome in outcomes:
        job = outcome.job
        routing = f", {job.routing[:40]} routing" if job.routing else ""
        what = f"{bench.kernel} ({bench.backend}) {job.problem.label}{routing}"
        rows = [_row(result) for result in outcome.results]
        parts += [Text(f"{what} on {bench.where.device['name']}", style="bold"), Text()]
        parts.append(table(COLUMNS, rows, name_column=None, width=width))
        parts += [Text(f"  {result.config.label}: {result.reason}") for result in outcome.results if result.reason]
        if ties := [result.config.label for result in outcome.results if result.verdict == "tie"]:
            parts.append(Text(f"  as fast as the best, as far as the samples tell: {'; '.join(ties)}"))
        if outcome.cut_short:
            parts.append(Text(f"  {outcome.cut_short}"))
        parts.append(Text())
    if not bench.where.measured:
        parts.append(Text(NO_MEASUREMENT, style="bold"))
    return Group(*parts)


def _row(result: CandidateResult) -> tuple[str, ...]:
    middle, ratio = result.median, result.ratio
    return (
        result.config.label,
        f"{middle.value:.4f} ms" if middle else "n/a",
        f"{middle.low:.4f}-{middle.high:.4f}" if middle else "n/a",
        f"{ratio.value:.3f}x" if ratio else "n/a",
        str(result.rounds),
        result.verdict,
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
        best = outcome.best.config.to_dict() if outcome.best else None
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
