"""Two tiles measured in turns, as a JSON document and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.measure.bench import MeasuringBench
from traceanalyzer.commands.tune.measure.result import TunedProblem
from traceanalyzer.commands.tune.measure.view import NO_MEASUREMENT, bench_fields, measured_tile
from traceanalyzer.commands.tune.run.compute import Job
from traceanalyzer.commands.tune.verify.compute import TileComparison
from traceanalyzer.commands.tune.verify.result import TuneVerifyDocument, VerifiedProblem
from traceanalyzer.declare import part_of
from traceanalyzer.show.terminal import table


def document(bench: MeasuringBench, compared: Sequence[tuple[Job, TileComparison]]) -> TuneVerifyDocument:
    """Return the JSON document of ``tune verify``."""
    return TuneVerifyDocument(
        **bench_fields(bench),
        problems=[
            VerifiedProblem(
                problem=part_of(TunedProblem, job.problem.to_dict()),
                concurrency=job.problem.tokens,
                routing=job.routing,
                before=measured_tile(comparison.before),
                after=measured_tile(comparison.after),
                ratio=comparison.ratio.value if comparison.ratio else None,
                ratio_interval=comparison.ratio.ends if comparison.ratio else None,
                verdict=comparison.verdict,
            )
            for job, comparison in compared
        ],
    )


def render(bench: MeasuringBench, compared: Sequence[tuple[Job, TileComparison]], width: int) -> Group:
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
