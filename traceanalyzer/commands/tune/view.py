"""What ``tune verify`` and ``tune import`` answer, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_config
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.measure.bench import MeasuringBench
from traceanalyzer.commands.tune.measure.view import NO_MEASUREMENT, bench_fields, measured_tile
from traceanalyzer.commands.tune.run.compute import Job
from traceanalyzer.commands.tune.verify.compute import Comparison
from traceanalyzer.declare import plain
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural


def verify_document(bench: MeasuringBench, compared: Sequence[tuple[Job, Comparison]]) -> dict[str, Any]:
    """Return the JSON document of ``tune verify``."""
    return {
        "schema": "traceanalyzer/tune-verify/1",
        **bench_fields(bench),
        "problems": [
            {
                "problem": job.problem.to_dict(),
                "concurrency": job.problem.tokens,
                "routing": job.routing,
                "before": plain(measured_tile(comparison.before)),
                "after": plain(measured_tile(comparison.after)),
                "ratio": comparison.ratio.value if comparison.ratio else None,
                "ratio_interval": comparison.ratio.ends if comparison.ratio else None,
                "verdict": comparison.verdict,
            }
            for job, comparison in compared
        ],
    }


def render_verify(bench: MeasuringBench, compared: Sequence[tuple[Job, Comparison]], width: int) -> Group:
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


def _point(point: SweepPoint) -> dict[str, Any]:
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
            _shortened(describe_config(point.config)),
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


def _median(point: SweepPoint) -> str:
    if point.median_ms is not None:
        return f"{point.median_ms:.4f} ms"
    # Files of finished configurations hold no timings.
    return "not timed" if point.reason is None else "failed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CONFIG else f"{text[: LONGEST_CONFIG - 3]}..."
