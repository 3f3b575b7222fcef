"""Serving results as JSON, CSV and tables: a list over loads, and a comparison of two sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.console import Group as Parts
from rich.text import Text

from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.comparison import Change, Comparison, estimates
from traceanalyzer.serving.grouping import Group, shown
from traceanalyzer.serving.metrics import sort_key
from traceanalyzer.serving.noise import Estimate
from traceanalyzer.serving.result_checks import expected_latency
from traceanalyzer.serving.series import Series
from traceanalyzer.serving.serving_result import UNLIMITED, Load
from traceanalyzer.serving.utilisation import FIGURES, Utilisation
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import percent, plural, visible

SCHEMA = "traceanalyzer/serving/1"
SHOW_SCHEMA = "traceanalyzer/serving-results/1"

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
OFFLINE_METRICS = (
    "avg_latency",
    "p50_latency",
    "p99_latency",
    "requests_per_second",
    "tokens_per_second",
    "elapsed_time",
)
SHOW_CSV_COLUMNS = ("result", "concurrency", "request_rate", "runs", "completed", "failed")
COMPARE_CSV_COLUMNS = (
    "concurrency",
    "request_rate",
    "metric",
    "before",
    "after",
    "change_percent",
    "change_percent_low",
    "change_percent_high",
    "direction",
    "verdict",
)
# What the table of a comparison over several loads shows; JSON and CSV have every metric.
HEADLINE = {
    "output_throughput": "tok/s",
    "mean_ttft_ms": "TTFT",
    "mean_tpot_ms": "TPOT",
    "mean_e2el_ms": "latency",
}


def comparison_document(found: Comparison, utilisation: Mapping[str, Utilisation]) -> dict[str, Any]:
    """Return the JSON document of ``serving compare``."""
    return {
        "schema": SCHEMA,
        "comparable": found.comparable,
        "differing_settings": [
            {"setting": d.setting, "before": _one_or_all(d.before), "after": _one_or_all(d.after)}
            for d in found.differences
        ],
        "metrics": [change_row(change) for change in found.changes],
        "method": found.method,
        "utilisation": utilisation_document(utilisation),
        "warnings": [warning.to_dict() for warning in found.warnings],
    }


def change_row(change: Change) -> dict[str, Any]:
    """Return one metric of a comparison with the contract's keys and its noise."""
    return {
        "metric": change.metric,
        "before": _mean(change.before),
        "after": _mean(change.after),
        "change_percent": change.percent,
        "direction": change.direction,
        "verdict": change.verdict,
        **_load(change.load),
        "where": dict(change.where),
        "change_percent_low": change.percent_low,
        "change_percent_high": change.percent_high,
        "runs_before": 0 if change.before is None else change.before.runs,
        "runs_after": 0 if change.after is None else change.after.runs,
        "half_width_before": None if change.before is None else change.before.half_width,
        "half_width_after": None if change.after is None else change.after.half_width,
    }


def show_document(
    found: Sequence[Series], utilisation: Mapping[str, Utilisation], warnings: Iterable[TraceWarning]
) -> dict[str, Any]:
    """Return the JSON document of ``serving show``."""
    return {
        "schema": SHOW_SCHEMA,
        "series": [{"name": one.name, "results": [_point(group) for group in one.points]} for one in found],
        "utilisation": utilisation_document(utilisation),
        "warnings": [warning.to_dict() for warning in warnings],
    }


def show_rows(found: Sequence[Series]) -> list[dict[str, Any]]:
    """Return flat rows for CSV: one a load, every metric in the unit of its key."""
    rows = []
    for one in found:
        for point in map(_point, one.points):
            rows.append({"result": one.name, **{k: point[k] for k in SHOW_CSV_COLUMNS[1:]}, **point["metrics"]})
    return rows


def show_csv_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Name the columns of ``show_rows``: the fixed ones, then every metric that occurs."""
    metrics = {key for row in rows for key in row} - set(SHOW_CSV_COLUMNS)
    return [*SHOW_CSV_COLUMNS, *sorted(metrics, key=sort_key)]


def utilisation_document(utilisation: Mapping[str, Utilisation]) -> list[dict[str, Any]]:
    """Return the averages of every log, one entry a GPU."""
    return [{"log": name, "source": u.source, **row} for name, u in utilisation.items() for row in u.gpus.to_dicts()]


def render_show(found: Sequence[Series], utilisation: Mapping[str, Utilisation], width: int) -> Parts:
    """Return a table over loads for each configuration."""
    parts: list[Any] = []
    notes: dict[str, None] = {}
    for one in found:
        first = one.points[0].results[0]
        parts.append(Text(visible(one.name), style="bold"))
        settings = _settings_line(one)
        if settings != one.name:
            parts.append(Text(f"  {visible(settings)}" if settings else "  settings not stated"))
        if first.kind == "serve":
            parts.append(_load_table(one, width, notes))
        else:
            rows = [(m, _value(e)) for m in OFFLINE_METRICS if (e := estimates(one.points[0], m)) is not None]
            parts.append(table((f"bench {first.kind}", "value"), rows, name_column=None, width=width))
        parts.append(Text())
    parts += [Text(f"  {note}") for note in notes]
    parts += render_utilisation(utilisation, width)
    return Parts(*parts)


def render_comparison(found: Comparison, utilisation: Mapping[str, Utilisation], width: int) -> Parts:
    """Return whether the sides compare, what differs, and the changes; n/a where a figure is missing."""
    parts: list[Any] = []
    if not found.comparable:
        parts += [Text("not comparable: no verdict is given; see the warnings", style="bold"), Text()]
    if found.differences:
        parts.append(Text("settings that differ", style="bold"))
        lines = [(d.setting, _all(d.before), _all(d.after)) for d in found.differences]
        parts += [table(("setting", "before", "after"), lines, name_column=None, width=width), Text()]
    if len(found.pairs) > 1:
        parts += [_changes_by_load(found, width), Text(), Text("  every other metric: --json or --csv")]
    else:
        heading = ("metric", "before", "after", "change", "verdict")
        rows = [_change_cells(change) for change in found.changes]
        parts += [table(heading, rows, name_column=None, width=width), Text()]
    parts += [Text(f"  {found.method}"), *render_utilisation(utilisation, width)]
    return Parts(*parts)


def _changes_by_load(found: Comparison, width: int) -> Any:
    """One row a load: tokens/s before and after, then the change of each headline metric."""
    metrics = [m for m in HEADLINE if any(c.metric == m and c.percent is not None for c in found.changes)]
    by_load: dict[tuple[Load, tuple[tuple[str, Any], ...]], dict[str, Change]] = {}
    for change in found.changes:
        by_load.setdefault((change.load, tuple(change.where.items())), {})[change.metric] = change
    rows = []
    for (load, where), changes in by_load.items():
        speed = changes.get("output_throughput")
        cells = [_value(speed.before if speed else None), _value(speed.after if speed else None)]
        for metric in metrics:
            one = changes.get(metric)
            share = "n/a" if one is None or one.percent is None else f"{one.percent:+.1f} %"
            cells.append(f"{share} {one.verdict}" if one is not None and one.verdict else share)
        rows.append((Group(load, dict(where), ()).name, *cells))
    heading = ("load", "tok/s before", "after", *(HEADLINE[metric] for metric in metrics))
    return table(heading, rows, name_column=None, width=width, spare=range(len(heading) - 1, 3, -1))


def _change_cells(change: Change) -> tuple[str, ...]:
    share = "n/a" if change.percent is None else f"{change.percent:+.1f} %"
    if change.percent_low is not None and change.percent_high is not None:
        share += f" [{change.percent_low:+.1f}, {change.percent_high:+.1f}]"
    return (change.metric, _value(change.before), _value(change.after), share, change.verdict or "n/a")


def _load_table(one: Series, width: int, notes: dict[str, None]) -> Any:
    repeated = any(len(point.results) > 1 for point in one.points)
    rows = []
    for point in one.points:
        cells = [_load_name(point)]
        for metric, _ in SHOW_COLUMNS:
            cells.append(_cell(point, metric, notes))
        cells.append(_success(point))
        if repeated:
            cells.append(str(len(point.results)))
        rows.append(cells)
    load = "req rate" if all(p.load.request_rate is not None for p in one.points) else "conc."
    heading = [load, *(label for _, label in SHOW_COLUMNS), "success", *(["runs"] if repeated else [])]
    tails = [i for i, label in enumerate(heading) if label == "P99"]
    return table(heading, rows, name_column=None, width=width, spare=tails)


def _cell(point: Group, metric: str, notes: dict[str, None]) -> str:
    found = estimates(point, metric)
    scale = 1000.0 if metric.endswith("_ms") else 1.0
    if found is not None:
        return _figure(found.mean / scale) + (" s" if scale > 1 else "")
    expected = expected_latency(point.results[0]) if metric == "mean_e2el_ms" and len(point.results) == 1 else None
    if expected is None:
        return "n/a"
    notes["~ derived: TTFT + (output length - 1) x TPOT"] = None
    return f"~{_figure((expected.low + expected.high) / 2 / scale)} s"


def _success(point: Group) -> str:
    """Share of requests that succeeded, over all runs; n/a where one does not tell."""
    runs = point.results
    counted = [(r.completed, r.completed + r.failed) for r in runs if r.completed is not None and r.failed is not None]
    if len(counted) == len(runs) and any(sent for _, sent in counted):
        return percent(sum(done for done, _ in counted) / sum(sent for _, sent in counted))
    shares = [run.success for run in runs if run.success is not None]
    return percent(fmean(shares)) if len(shares) == len(runs) else "n/a"


def _load_name(point: Group) -> str:
    if point.load.concurrency is not None:
        return f"{point.load.concurrency:g}"
    if point.load.request_rate is not None:
        return f"{point.load.request_rate:g}/s"
    return "none" if point.results[0].settings.get("max_concurrency") == UNLIMITED else "n/a"


def _settings_line(one: Series) -> str:
    settings = one.points[0].results[0].settings
    hidden = {"max_concurrency", "request_rate", "burstiness"}
    return ", ".join(f"{key} = {shown(value)}" for key, value in settings.items() if key not in hidden)


def render_utilisation(utilisation: Mapping[str, Utilisation], width: int) -> list[Any]:
    """Return a table of averages for each log."""
    parts: list[Any] = []
    for name, found in utilisation.items():
        known = [figure for figure in FIGURES if found.gpus[figure].drop_nulls().len()]
        rows = [
            (row["gpu"], f"{row['samples']:,}", *("n/a" if row[f] is None else f"{row[f]:,.1f}" for f in known))
            for row in found.gpus.iter_rows(named=True)
        ]
        headings = [UTILISATION_HEADINGS[figure] for figure in known]
        parts += [Text(), Text(f"utilisation, {visible(name)}: mean of all samples", style="bold")]
        parts.append(table(("GPU", "samples", *headings), rows, name_column=None, width=width))
    return parts


UTILISATION_HEADINGS = {
    "gpu_percent": "GPU %",
    "memory_controller_percent": "mem. busy %",
    "memory_used_mib": "memory MiB",
    "memory_used_percent": "memory %",
    "pcie_rx_mb_s": "PCIe rx MB/s",
    "pcie_tx_mb_s": "PCIe tx MB/s",
    "pcie_both_mb_s": "PCIe rx+tx MB/s",
    "power_w": "power W",
}


def _point(group: Group) -> dict[str, Any]:
    keys = sorted({key for run in group.results for key in run.metrics}, key=sort_key)
    figures = {key: estimates(group, key) for key in keys}
    counts = {key: [getattr(run, key) for run in group.results] for key in ("completed", "failed")}
    return {
        **_load(group.load),
        "runs": len(group.results),
        **{key: None if None in values else sum(values) for key, values in counts.items()},
        "settings": dict(group.results[0].settings),
        "metrics": {key: _mean(found) for key, found in figures.items()},
        "half_widths": {key: found.half_width for key, found in figures.items() if found is not None},
        "derived": sorted({key for run in group.results for key in run.derived}),
        "sources": list(dict.fromkeys(run.source for run in group.results)),
    }


def _load(load: Load) -> dict[str, Any]:
    return {"concurrency": load.concurrency, "request_rate": load.request_rate}


def _mean(found: Estimate | None) -> float | None:
    return None if found is None else found.mean


def _value(found: Estimate | None) -> str:
    if found is None:
        return "n/a"
    return _figure(found.mean) + ("" if found.half_width is None else f" ± {_figure(found.half_width)}")


def _figure(value: float) -> str:
    """Four significant digits, no exponent below a million."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:.{decimals}f}"


def _one_or_all(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _all(values: tuple[Any, ...]) -> str:
    if len(values) > 4:
        return f"{', '.join(shown(v) for v in values[:3])} and {plural(len(values) - 3, 'more value')}"
    return ", ".join(shown(value) for value in values)
