"""Results as rows: one per configuration and load, with every metric in the unit of its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from traceanalyzer.declare import csv_columns
from traceanalyzer.serving.comparison import mean_of
from traceanalyzer.serving.grouping import RunGroup
from traceanalyzer.serving.metrics import sort_key
from traceanalyzer.serving.result import LoadResult
from traceanalyzer.serving.series import Series

SHOW_COLUMNS = (
    ("request_throughput", "req/s"),
    ("mean_e2el_ms", "latency"),
    ("p99_e2el_ms", "P99"),
    ("output_throughput", "tokens/s"),
    ("mean_ttft_ms", "TTFT"),
    ("p99_ttft_ms", "P99"),
    ("mean_tpot_ms", "TPOT"),
    ("p99_tpot_ms", "P99"),
)
"""Metrics in a table over loads, with their headings."""

HEADLINE = {
    "output_throughput": "tok/s",
    "mean_ttft_ms": "TTFT",
    "mean_tpot_ms": "TPOT",
    "mean_e2el_ms": "latency",
}
"""Metrics in a table of changes over several loads, with their headings; JSON and CSV have every metric."""


def load_result(name: str, group: RunGroup) -> LoadResult:
    """Return what the runs of one load gave; ``name`` is that of the configuration."""
    keys = sorted({key for run in group.results for key in run.metrics}, key=sort_key)
    means = {key: mean for key in keys if (mean := mean_of(group, key)) is not None}
    return LoadResult(
        result=name,
        **group.load._asdict(),
        runs=len(group.results),
        completed=_total([run.completed for run in group.results]),
        failed=_total([run.failed for run in group.results]),
        settings=dict(group.results[0].settings),
        metrics={key: mean.mean for key, mean in means.items()},
        half_widths={key: mean.half_width for key, mean in means.items()},
        derived=sorted({key for run in group.results for key in run.derived}),
        sources=list(dict.fromkeys(run.source for run in group.results)),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def show_rows(listed: Sequence[Series]) -> list[dict[str, Any]]:
    """Return flat rows for CSV: one per load, every metric a column."""
    fixed = csv_columns(LoadResult)
    points = [load_result(one.name, point) for one in listed for point in one.points]
    return [{name: getattr(point, name) for name in fixed} | dict(point.metrics) for point in points]


def show_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Name the columns of ``show_rows``: those that ``LoadResult`` declares, then every metric that occurs."""
    fixed = csv_columns(LoadResult)
    return [*fixed, *sorted({key for row in rows for key in row} - set(fixed), key=sort_key)]
