"""Serving results as JSON documents and tables: a list over loads, and a comparison of two sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.serving.result import ResultSeries, ServingResultsDocument
from traceanalyzer.declare import columns
from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.comparison import ServingComparison, mean_of
from traceanalyzer.serving.grouping import RunGroup, shown
from traceanalyzer.serving.result import GpuUtilisation, MetricChange
from traceanalyzer.serving.result_checks import expected_latency
from traceanalyzer.serving.result_rows import HEADLINE, SHOW_COLUMNS, load_result
from traceanalyzer.serving.series import Series
from traceanalyzer.serving.serving_result import UNLIMITED, Load
from traceanalyzer.serving.utilisation import FIGURES, Utilisation, gpu_rows
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import percent, plural, visible

OFFLINE_METRICS = (
    "avg_latency",
    "p50_latency",
    "p99_latency",
    "requests_per_second",
    "tokens_per_second",
    "elapsed_time",
)
HIDDEN = frozenset({"max_concurrency", "request_rate", "burstiness"})
"""Settings that the loads show already."""


def show_document(
    listed: Sequence[Series], utilisation: Mapping[str, Utilisation], warnings: Iterable[TraceWarning]
) -> ServingResultsDocument:
    """Return the JSON document of ``serving show``."""
    return ServingResultsDocument(
        series=[
            ResultSeries(name=one.name, results=[load_result(one.name, point) for point in one.points])
            for one in listed
        ],
        utilisation=gpu_rows(utilisation),
        warnings=list(warnings),
    )


def render_show(listed: Sequence[Series], utilisation: Mapping[str, Utilisation], width: int) -> Group:
    """Return a table over loads for each configuration."""
    parts: list[RenderableType] = []
    notes: dict[str, None] = {}
    for one in listed:
        first = one.points[0].results[0]
        parts.append(Text(visible(one.name), style="bold"))
        settings = _settings_line(one)
        if settings != one.name:
            parts.append(Text(f"  {visible(settings)}" if settings else "  settings not stated"))
        if first.kind == "serve":
            parts.append(_load_table(one, width, notes))
        else:
            means = {metric: mean_of(one.points[0], metric) for metric in OFFLINE_METRICS}
            rows = [(metric, _value(mean.mean, mean.half_width)) for metric, mean in means.items() if mean]
            parts.append(table((f"bench {first.kind}", "value"), rows, name_column=None, width=width))
        parts.append(Text())
    parts += [Text(f"  {note}") for note in notes]
    parts += render_utilisation(utilisation, width)
    return Group(*parts)


def render_comparison(comparison: ServingComparison, utilisation: Mapping[str, Utilisation], width: int) -> Group:
    """Return whether the sides compare, what differs, and the changes; n/a where a figure is missing."""
    parts: list[RenderableType] = []
    if not comparison.comparable:
        parts += [Text("not comparable: no verdict is given; see the warnings", style="bold"), Text()]
    if comparison.differences:
        parts.append(Text("settings that differ", style="bold"))
        lines = [(d.setting, _all(d.before), _all(d.after)) for d in comparison.differences]
        parts += [table(("setting", "before", "after"), lines, name_column=None, width=width), Text()]
    if len(comparison.pairs) > 1:
        parts += [_changes_by_load(comparison, width), Text(), Text("  every other metric: --json or --csv")]
    else:
        heading = ("metric", "before", "after", "change", "verdict")
        rows = [_change_cells(change) for change in comparison.changes]
        parts += [table(heading, rows, name_column=None, width=width), Text()]
    parts += [Text(f"  {comparison.method}"), *render_utilisation(utilisation, width)]
    return Group(*parts)


def _changes_by_load(comparison: ServingComparison, width: int) -> Table:
    """One row per load: tokens/s before and after, then the change of each headline metric."""
    metrics = [m for m in HEADLINE if any(c.metric == m and c.change_percent is not None for c in comparison.changes)]
    by_load: dict[tuple[Load, tuple[tuple[str, Any], ...]], dict[str, MetricChange]] = {}
    for change in comparison.changes:
        load = Load(change.concurrency, change.request_rate)
        by_load.setdefault((load, tuple(change.where.items())), {})[change.metric] = change
    heading = ("load", "tok/s before", "after", *(HEADLINE[metric] for metric in metrics))
    rows = [
        (RunGroup(load, dict(where), ()).name, *_load_cells(changes, metrics))
        for (load, where), changes in by_load.items()
    ]
    return table(heading, rows, name_column=None, width=width, spare=range(len(heading) - 1, 3, -1))


def _load_cells(changes: Mapping[str, MetricChange], metrics: Sequence[str]) -> list[str]:
    speed = changes.get("output_throughput")
    cells = [*_sides(speed)] if speed else ["n/a", "n/a"]
    for metric in metrics:
        one = changes.get(metric)
        cells.append("n/a" if one is None else " ".join(filter(None, (_share(one), one.verdict))))
    return cells


def _change_cells(change: MetricChange) -> tuple[str, ...]:
    share = _share(change)
    if change.change_percent_low is not None and change.change_percent_high is not None:
        share += f" [{change.change_percent_low:+.1f}, {change.change_percent_high:+.1f}]"
    return (change.metric, *_sides(change), share, change.verdict or "n/a")


def _sides(change: MetricChange) -> tuple[str, str]:
    return _value(change.before, change.half_width_before), _value(change.after, change.half_width_after)


def _share(change: MetricChange) -> str:
    return "n/a" if change.change_percent is None else f"{change.change_percent:+.1f} %"


def _load_table(one: Series, width: int, notes: dict[str, None]) -> Table:
    """One row per load; ``notes`` gets what explains a cell."""
    repeated = any(len(point.results) > 1 for point in one.points)
    rows = []
    for point in one.points:
        figures = [_cell(point, metric, notes) for metric, _ in SHOW_COLUMNS]
        rows.append([_load_name(point), *figures, _success(point), *([str(len(point.results))] if repeated else [])])
    load = "req rate" if all(p.load.request_rate is not None for p in one.points) else "conc."
    heading = [load, *(label for _, label in SHOW_COLUMNS), "success", *(["runs"] if repeated else [])]
    tails = [i for i, label in enumerate(heading) if label == "P99"]
    return table(heading, rows, name_column=None, width=width, spare=tails)


def _cell(point: RunGroup, metric: str, notes: dict[str, None]) -> str:
    mean = mean_of(point, metric)
    scale, unit = (1000.0, " s") if metric.endswith("_ms") else (1.0, "")
    if mean is not None:
        return f"{_figure(mean.mean / scale)}{unit}"
    expected = expected_latency(point.results[0]) if metric == "mean_e2el_ms" and len(point.results) == 1 else None
    if expected is None:
        return "n/a"
    notes["~ derived: TTFT + (output length - 1) x TPOT"] = None
    return f"~{_figure((expected.low + expected.high) / 2 / scale)}{unit}"


def _success(point: RunGroup) -> str:
    """Share of requests that succeeded, over all runs; n/a where one does not tell."""
    runs = point.results
    counted = [(r.completed, r.completed + r.failed) for r in runs if r.completed is not None and r.failed is not None]
    if len(counted) == len(runs) and any(sent for _, sent in counted):
        return percent(sum(done for done, _ in counted) / sum(sent for _, sent in counted))
    shares = [run.success for run in runs if run.success is not None]
    return percent(fmean(shares)) if len(shares) == len(runs) else "n/a"


def _load_name(point: RunGroup) -> str:
    if point.load.concurrency is not None:
        return f"{point.load.concurrency:g}"
    if point.load.request_rate is not None:
        return f"{point.load.request_rate:g}/s"
    return "none" if point.results[0].settings.get("max_concurrency") == UNLIMITED else "n/a"


def _settings_line(one: Series) -> str:
    settings = one.points[0].results[0].settings
    return ", ".join(f"{key} = {shown(value)}" for key, value in settings.items() if key not in HIDDEN)


def render_utilisation(utilisation: Mapping[str, Utilisation], width: int) -> list[RenderableType]:
    """Return a table of averages for each log."""
    headings = {column.name: column.heading for column in columns(GpuUtilisation)}
    parts: list[RenderableType] = []
    for name, log in utilisation.items():
        known = [figure for figure in FIGURES if log.gpus[figure].drop_nulls().len()]
        rows = [
            (row["gpu"], f"{row['samples']:,}", *("n/a" if row[f] is None else f"{row[f]:,.1f}" for f in known))
            for row in log.gpus.iter_rows(named=True)
        ]
        parts += [Text(), Text(f"utilisation, {visible(name)}: mean of all samples", style="bold")]
        shown_columns = [headings[figure] for figure in ("gpu", "samples", *known)]
        parts.append(table(shown_columns, rows, name_column=None, width=width))
    return parts


def _value(mean: float | None, half_width: float | None) -> str:
    if mean is None:
        return "n/a"
    return _figure(mean) + ("" if half_width is None else f" ± {_figure(half_width)}")


def _figure(value: float) -> str:
    """Four significant digits, no exponent below a million."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:.{decimals}f}"


def _all(values: tuple[Any, ...]) -> str:
    if len(values) > 4:
        return f"{', '.join(shown(v) for v in values[:3])} and {plural(len(values) - 3, 'more value')}"
    return ", ".join(shown(value) for value in values)
