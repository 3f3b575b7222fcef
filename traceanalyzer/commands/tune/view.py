"""Tuning results as the contract's JSON, as tables, and in the line format of hand-written sweeps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.compile.screen import Candidate, Screen
from traceanalyzer.commands.tune.formats.seed_lines import best_line, point_line
from traceanalyzer.commands.tune.formats.sweep import Point, Sweep
from traceanalyzer.commands.tune.measure.bench import Bench
from traceanalyzer.commands.tune.measure.race import Result
from traceanalyzer.commands.tune.measure.statistics import Interval
from traceanalyzer.commands.tune.run.compute import Job, Outcome
from traceanalyzer.commands.tune.verify.compute import Comparison
from traceanalyzer.kernels.problem import Problem
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural

NO_MEASUREMENT = "no measurement: these are times of an interpreter on tiny shapes and say nothing about a GPU"


SELDOM = {"group_m": "group", "waves_per_eu": "waves/EU", "matrix_instr_nonkdim": "nonkdim"}
"""Parameters that have a column only where candidates differ in them -> its heading."""

FEWEST_REASONS = 3
"""So many reasons of candidates without a rank are shown however long the table is."""


@contextmanager
def progress(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar on stderr, where that is a terminal; yield what moves it: (text, done, total)."""
    if not sys.stderr.isatty():
        yield lambda text, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)


def screen_document(found: Screen, not_compiled: int, untried: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON document of ``tune screen``.

    Args:
        found: the ranking.
        not_compiled: candidates left out of it.
        untried: values that the user named and no candidate has, such as ``group_m=8``, and why.
    """
    return {
        "schema": "traceanalyzer/tune-screen/1",
        "target_arch": found.device.target.name,
        "gpu": found.device.name,
        "kernel": found.kernel,
        "problem": found.problem.to_dict(),
        "not_compiled": not_compiled,
        "not_tried": [{"value": value, "reason": reason} for value, reason in untried.items()],
        "candidates": [_candidate(candidate) for candidate in found.candidates],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    facts, score = candidate.facts, candidate.score
    return {
        "config": candidate.config.to_dict(),
        "rank": candidate.rank,
        "fits": candidate.fits,
        "registers": facts.assembly.registers if facts else None,
        "spills": facts.assembly.spills if facts else None,
        "shared_bytes": facts.shared_bytes if facts else None,
        "work_ratio": candidate.work_ratio,
        "relative_cost": score.cost if score else None,
        "bytes_in_flight": score.bytes_in_flight if score else None,
        "waves": score.waves if score else None,
        "reason": candidate.reason,
    }


def render_screen(found: Screen, not_compiled: int, untried: Mapping[str, str], limit: int, width: int) -> Group:
    """Return the ranking as text; ``limit`` rows of it, 0: all. Other arguments are those of ``screen_document``."""
    ranked = [candidate for candidate in found.candidates if candidate.rank is not None]
    shown = ranked[: limit or len(ranked)]
    head = Text(f"{found.kernel} {describe_problem(found.problem)} on {found.device.name}", style="bold")
    more = [name for name in SELDOM if len({getattr(candidate.config, name) for candidate in ranked}) > 1]
    columns = ("rank", "tile", "warps", "stages", *(SELDOM[name] for name in more))
    columns += ("regs", "spills", "shared", "work", "in flight", "waves")
    lines = []
    if len(ranked) > len(shown):
        lines.append(f"and {plural(len(ranked) - len(shown), 'more candidate')} (--limit 0 shows all)")
    most = max(FEWEST_REASONS, (limit or len(found.candidates)) - len(ranked))
    for fits, what in ((None, "not compiled in time, may still run"), (False, "cannot run")):
        some = [candidate for candidate in found.candidates if candidate.rank is None and candidate.fits is fits]
        lines += [f"{what}: {candidate.config.label}: {candidate.reason}" for candidate in some[:most]]
        if len(some) > most:
            lines.append(f"{what}: {plural(len(some), 'candidate')} in all (--json lists them)")
    if any(candidate.fits is None for candidate in found.candidates):
        lines.append("more time or fewer processes on a busy machine: --timeout, --jobs")
    if not_compiled:
        lines.append(f"{not_compiled:,} candidates were not compiled: less promising by their tile alone (--compile)")
    lines += [f"{value} is not tried: {reason}" for value, reason in untried.items()]
    lines.append("an order, no measurement: measure at least the best three with tune run")
    rows = table(columns, [_screen_row(candidate, more) for candidate in shown], name_column=None, width=width)
    return Group(head, Text(), rows, *(Text(f"  {line}") for line in lines))


def _screen_row(candidate: Candidate, more: Sequence[str]) -> tuple[str, ...]:
    facts, score, config = candidate.facts, candidate.score, candidate.config
    assert facts is not None
    assert score is not None
    return (
        str(candidate.rank),
        config.tile,
        str(config.num_warps),
        str(config.num_stages),
        *(_number(getattr(config, name)) for name in more),
        _number(facts.assembly.registers),
        _number(facts.assembly.spills),
        f"{facts.shared_bytes / 1024:.1f} KiB",
        "n/a" if candidate.work_ratio is None else f"{candidate.work_ratio:.2f}x",
        f"{score.bytes_in_flight / 1024:,.0f} KiB",
        f"{score.waves:.2f}",
    )


def _number(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"


def run_document(bench: Bench, outcomes: Sequence[Outcome], sweep: Path | None) -> dict[str, Any]:
    """Return the JSON document of ``tune run``."""
    return {
        "schema": "traceanalyzer/tune-run/1",
        **_where(bench),
        "sweep": None if sweep is None else str(sweep),
        "problems": [
            {
                **_job(outcome.job),
                "finished": outcome.finished,
                "cut_short": outcome.cut_short,
                "best": outcome.best.config.to_dict() if outcome.best else None,
                "results": [_result(result) for result in outcome.results],
            }
            for outcome in outcomes
        ],
    }


def _where(bench: Bench) -> dict[str, Any]:
    return {
        "kernel": bench.kernel,
        "backend": bench.backend,
        "measured": bench.where.measured,
        "device": dict(bench.where.device),
        "versions": dict(bench.where.versions),
    }


def _job(job: Job) -> dict[str, Any]:
    return {"problem": job.problem.to_dict(), "concurrency": job.problem.tokens, "routing": job.routing}


def _result(result: Result) -> dict[str, Any]:
    return {
        "config": result.config.to_dict(),
        "verdict": result.verdict,
        "rounds": result.rounds,
        "median_ms": result.median.value if result.median else None,
        "interval_ms": _ends(result.median),
        "ratio_to_best": result.ratio.value if result.ratio else None,
        "ratio_interval": _ends(result.ratio),
        "reason": result.reason,
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def render_run(bench: Bench, outcomes: Sequence[Outcome], width: int) -> Group:
    """Return each problem's candidates as a table."""
    parts: list[Any] = []
    for outcome in outcomes:
        job = outcome.job
        routing = f", {job.routing[:40]} routing" if job.routing else ""
        where = f"{bench.kernel} ({bench.backend}) {describe_problem(job.problem)}{routing}"
        parts += [Text(f"{where} on {bench.where.device['name']}", style="bold"), Text()]
        columns = ("candidate", "median", "95 % interval", "over best", "rounds", "verdict")
        rows = [_run_row(result) for result in outcome.results]
        parts.append(table(columns, rows, name_column=None, width=width))
        parts += [Text(f"  {r.config.label}: {r.reason}") for r in outcome.results if r.reason]
        ties = [result.config.label for result in outcome.results if result.verdict == "tie"]
        if ties:
            parts.append(Text(f"  not to be told from the best: {'; '.join(ties)}"))
        if outcome.cut_short:
            parts.append(Text(f"  {outcome.cut_short}"))
        parts.append(Text())
    if not bench.where.measured:
        parts.append(Text(NO_MEASUREMENT, style="bold"))
    return Group(*parts)


def seed_log(bench: Bench, outcomes: Sequence[Outcome]) -> str:
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


def _points(bench: Bench, outcome: Outcome) -> list[Point]:
    return [
        replace(
            bench.point(outcome.job.problem, outcome.job.routing, config),
            rounds=tuple(tuple(rounds[n]) for n in sorted(rounds)),
        )
        for config in outcome.job.configs
        if (rounds := outcome.samples.get(config))
    ]


def _run_row(result: Result) -> tuple[str, ...]:
    middle, ratio = result.median, result.ratio
    return (
        result.config.label,
        f"{middle.value:.4f} ms" if middle else "n/a",
        f"{middle.low:.4f}-{middle.high:.4f}" if middle else "n/a",
        f"{ratio.value:.3f}x" if ratio else "n/a",
        str(result.rounds),
        result.verdict,
    )


def verify_document(bench: Bench, compared: Sequence[tuple[Job, Comparison]]) -> dict[str, Any]:
    """Return the JSON document of ``tune verify``."""
    return {
        "schema": "traceanalyzer/tune-verify/1",
        **_where(bench),
        "problems": [
            {
                **_job(job),
                "before": _result(comparison.before),
                "after": _result(comparison.after),
                "ratio": comparison.ratio.value if comparison.ratio else None,
                "ratio_interval": _ends(comparison.ratio),
                "verdict": comparison.verdict,
            }
            for job, comparison in compared
        ],
    }


def render_verify(bench: Bench, compared: Sequence[tuple[Job, Comparison]], width: int) -> Group:
    """Return before and after of every problem as a table."""
    rows = [
        (
            str(job.problem.m),
            job.routing[:20] if job.routing else "-",
            f"{c.before.median.value:.4f} ms" if c.before.median else "n/a",
            f"{c.after.median.value:.4f} ms" if c.after.median else "n/a",
            f"{c.ratio.value:.3f}x ({c.ratio.low:.3f}-{c.ratio.high:.3f})" if c.ratio else "n/a",
            c.verdict,
        )
        for job, c in compared
    ]
    first = compared[0][1]
    head = f"{bench.kernel} ({bench.backend}) on {bench.where.device['name']}"
    what = f"  before {first.before.config.label}, after {first.after.config.label}"
    columns = ("m", "routing", "before", "after", "after / before", "verdict")
    parts: list[Any] = [Text(head, style="bold"), Text(what), Text()]
    parts.append(table(columns, rows, name_column=None, width=width))
    for job, c in compared:
        parts += [Text(f"  m={job.problem.m}: {r.config.label}: {r.reason}") for r in (c.before, c.after) if r.reason]
    if not bench.where.measured:
        parts.append(Text(NO_MEASUREMENT, style="bold"))
    return Group(*parts)


def points_document(sweep: Sweep) -> dict[str, Any]:
    """Return the JSON document of ``tune import``."""
    return {
        "schema": "traceanalyzer/tune-points/1",
        "points": [_point(point) for point in sweep.points],
        "warnings": [warning.to_dict() for warning in sweep.warnings],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "kernel": point.kernel,
        "m": point.m,
        "concurrency": point.concurrency,
        "shape": dict(point.shape),
        "config": dict(point.config),
        "samples_ms": list(point.samples_ms),
        "median_ms": point.median_ms,
        "reason": point.reason,
        "backend": point.backend,
        "routing": point.routing,
        "device": dict(point.device),
        "versions": dict(point.versions),
        "measured": point.measured,
    }


LONGEST_CONFIG = 60


def render_points(sweep: Sweep, limit: int, width: int) -> Group:
    """Return imported points as a table, the first ``limit`` of them."""
    rows = [
        (
            "n/a" if point.m is None else str(point.m),
            "n/a" if point.concurrency is None else str(point.concurrency),
            _shortened(config_label(point.config)),
            str(len(point.samples_ms)),
            _median(point),
        )
        for point in sweep.points[:limit]
    ]
    head = Text(f"{plural(len(sweep.points), 'point')} in {sweep.source} ({sweep.format})", style="bold")
    columns = ("m", "conc", "config", "samples", "median")
    parts: list[Any] = [head, Text(), table(columns, rows, name_column=None, width=width)]
    if len(sweep.points) > limit:
        parts.append(Text(f"  and {plural(len(sweep.points) - limit, 'more point')} (--limit 0 shows all)"))
    return Group(*parts)


def _median(point: Point) -> str:
    if point.median_ms is not None:
        return f"{point.median_ms:.4f} ms"
    # Files of finished configurations hold no timings.
    return "not timed" if point.reason is None else "failed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CONFIG else f"{text[: LONGEST_CONFIG - 3]}..."


TILE = ("block_m", "block_n", "block_k", "split_k")


def config_label(config: Mapping[str, Any]) -> str:
    """Return any configuration on one line: the tile, where it has one, then its other parameters."""
    tile = [config.get(name) for name in TILE]
    known = [str(value) for value in tile if value is not None]
    shown = "x".join(known) if len(known) == len(TILE) else ""
    rest = [f"{k}={v}" for k, v in config.items() if v is not None and not (shown and k in TILE)]
    return " ".join([*filter(None, [shown]), *rest])


def describe_problem(problem: Problem) -> str:
    """Return a problem in words, such as ``m=4 n=5760 k=2880 bf16, top 4 of 32 experts``."""
    experts = f", top {problem.top_k} of {problem.experts} experts" if problem.experts is not None else ""
    return f"m={problem.m} n={problem.n} k={problem.k} {problem.dtype}{experts}"
