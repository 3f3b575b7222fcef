"""Serving results as tables: a list over loads, a comparison of two sides, and parallel layouts side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.serving.result import (
    LayoutRatio,
    ResultSeries,
    ServingLayoutsDocument,
    ServingResultsDocument,
)
from traceanalyzer.declare import columns
from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.comparison import mean_of
from traceanalyzer.serving.grouping import RunGroup, shown
from traceanalyzer.serving.result import GpuUtilisation, MetricChange, ServingDocument
from traceanalyzer.serving.result_checks import expected_latency
from traceanalyzer.serving.series import HEADLINE, SHOW_COLUMNS, Series, load_result
from traceanalyzer.serving.serving_result import UNLIMITED, Load
from traceanalyzer.serving.utilisation import FIGURES
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
LAYOUT_HEADINGS = {
    "request_throughput": "req/s",
    "output_throughput": "tokens/s",
    "mean_ttft_ms": "TTFT",
    "mean_itl_ms": "ITL",
    "mean_tpot_ms": "TPOT",
}
HIDDEN = frozenset({"max_concurrency", "request_rate", "burstiness"})
"""Settings that are not listed, as the loads show them."""


def show_document(
    listed: Sequence[Series], utilisation: list[GpuUtilisation], warnings: list[TraceWarning]
) -> ServingResultsDocument:
    """Return the JSON document of ``serving show``."""
    return ServingResultsDocument(
        series=[
            ResultSeries(name=one.name, results=[load_result(one.name, point) for point in one.points])
            for one in listed
        ],
        utilisation=utilisation,
        warnings=warnings,
    )


def render_show(listed: Sequence[Series], utilisation: Sequence[GpuUtilisation], width: int) -> Group:
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
    return Group(*parts, *render_utilisation(utilisation, width))


def render_comparison(comparison: ServingDocument, width: int) -> Group:
    """Return whether the sides compare, what differs, and the changes; n/a where a figure is missing."""
    parts: list[RenderableType] = []
    if not comparison.comparable:
        parts += [Text("not comparable, so no verdicts: see the warnings", style="bold"), Text()]
    if comparison.differing_settings:
        parts.append(Text("settings that differ", style="bold"))
        lines = [(d.setting, _all(d.before), _all(d.after)) for d in comparison.differing_settings]
        parts += [table(("setting", "before", "after"), lines, name_column=None, width=width), Text()]
    by_load: dict[str, dict[str, MetricChange]] = {}
    for change in comparison.metrics:
        where: dict[str, Any] = dict(change.where)
        load = RunGroup(Load(change.concurrency, change.request_rate), where, ()).name
        by_load.setdefault(load, {})[change.metric] = change
    if len(by_load) > 1:
        parts += [_changes_by_load(by_load, width), Text(), Text("  every other metric: --json or --csv")]
    else:
        heading = ("metric", "before", "after", "change", "verdict")
        rows = [_change_cells(change) for change in comparison.metrics]
        parts += [table(heading, rows, name_column=None, width=width), Text()]
    parts += [Text(f"  {comparison.method}"), *render_utilisation(comparison.utilisation, width)]
    return Group(*parts)


def _changes_by_load(by_load: Mapping[str, Mapping[str, MetricChange]], width: int) -> Table:
    """Return a row per load: tokens/s before and after, then the change of each headline metric."""
    known = {metric for changes in by_load.values() for metric, c in changes.items() if c.change_percent is not None}
    metrics = [metric for metric in HEADLINE if metric in known]
    heading = ("load", "tok/s before", "after", *(HEADLINE[metric] for metric in metrics))
    rows = [(load, *_load_cells(changes, metrics)) for load, changes in by_load.items()]
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
    """Return a row per load; what explains a cell is added to ``notes``."""
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
    """Return the share of successful requests over all runs; n/a if one does not tell."""
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


def render_layouts(compared: ServingLayoutsDocument, width: int) -> Group:
    """Return a row per pair of layouts with ranges over the loads: throughput as a factor, latency as a change."""
    by_pair: dict[tuple[str, str], dict[str, LayoutRatio]] = {}
    for ratio in compared.ratios:
        by_pair.setdefault((ratio.layout, ratio.reference), {})[ratio.metric] = ratio
    metrics = [metric for metric in LAYOUT_HEADINGS if any(metric in ratios for ratios in by_pair.values())]
    rows = [
        (
            f"{layout} over {reference}",
            *(_ratio_range(ratios.get(metric)) for metric in metrics),
            str(max(ratio.loads for ratio in ratios.values())),
        )
        for (layout, reference), ratios in by_pair.items()
    ]
    heading = ("layouts", *(LAYOUT_HEADINGS[metric] for metric in metrics), "loads")
    parts: list[RenderableType] = [table(heading, rows, name_column=None, width=width), Text()]
    if not compared.comparable:
        parts.append(Text("not comparable: see the warnings", style="bold"))
    best_at: dict[str, list[str]] = {}
    for best in compared.best:
        load = RunGroup(Load(best.concurrency, best.request_rate), {}, ()).name
        best_at.setdefault(best.layout, []).append(load)
    for name, loads in best_at.items():
        parts.append(Text(f"  most tokens/s: {visible(name)} at {plural(len(loads), 'load')} ({', '.join(loads)})"))
    return Group(*parts, *render_utilisation(compared.utilisation, width))


def _ratio_range(ratio: LayoutRatio | None) -> str:
    if ratio is None:
        return "n/a"
    if ratio.direction == "higher":
        return f"x {ratio.ratio_low:.2f} to {ratio.ratio_high:.2f}"
    return f"{(ratio.ratio_low - 1) * 100:+.0f} to {(ratio.ratio_high - 1) * 100:+.0f} %"


def render_utilisation(utilisation: Sequence[GpuUtilisation], width: int) -> list[RenderableType]:
    """Return a table of averages for each log."""
    declared = {column.name: column.heading for column in columns(GpuUtilisation)}
    parts: list[RenderableType] = []
    for log, gpus in groupby(utilisation, key=lambda one: one.log):
        own = list(gpus)
        known = [figure for figure in FIGURES if any(getattr(one, figure) is not None for one in own)]
        figures = [[getattr(one, figure) for figure in known] for one in own]
        rows = [
            (one.gpu, f"{one.samples:,}", *("n/a" if value is None else f"{value:,.1f}" for value in values))
            for one, values in zip(own, figures, strict=True)
        ]
        headings = [declared[name] for name in ("gpu", "samples", *known)]
        parts += [Text(), Text(f"utilisation, {visible(log)}: mean of all samples", style="bold")]
        parts.append(table(headings, rows, name_column=None, width=width))
    return parts


def _value(mean: float | None, half_width: float | None) -> str:
    if mean is None:
        return "n/a"
    return _figure(mean) + ("" if half_width is None else f" ± {_figure(half_width)}")


def _figure(value: float) -> str:
    """Return four significant digits without an exponent."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:.{decimals}f}"


def _all(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    if len(values) > 4:
        return f"{', '.join(shown(one) for one in values[:3])} and {plural(len(values) - 3, 'more value')}"
    return ", ".join(map(shown, values))
