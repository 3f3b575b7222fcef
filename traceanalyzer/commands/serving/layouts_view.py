"""The comparison of parallel layouts as JSON, CSV and text: ranges of ratios over the loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group as Parts
from rich.text import Text

from traceanalyzer.commands.serving.view import render_utilisation, utilisation_document
from traceanalyzer.serving.grouping import Group
from traceanalyzer.serving.layouts import LayoutComparison, LayoutRatio
from traceanalyzer.serving.utilisation import Utilisation
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural, visible

SCHEMA = "traceanalyzer/serving-layouts/1"
CSV_COLUMNS = ("reference", "layout", "metric", "ratio_low", "ratio_high", "direction", "loads")
HEADINGS = {
    "request_throughput": "req/s",
    "output_throughput": "tokens/s",
    "mean_ttft_ms": "TTFT",
    "mean_itl_ms": "ITL",
    "mean_tpot_ms": "TPOT",
}


def document(found: LayoutComparison, utilisation: Mapping[str, Utilisation]) -> dict[str, Any]:
    """Return the JSON document of ``serving compare --layouts``."""
    return {
        "schema": SCHEMA,
        "layouts": list(found.layouts),
        "comparable": found.comparable,
        "ratios": [ratio_row(ratio) for ratio in found.ratios],
        "best": [
            {
                "concurrency": load.concurrency,
                "request_rate": load.request_rate,
                "layout": name,
                "output_throughput": speed,
            }
            for load, (name, speed) in found.best.items()
        ],
        "utilisation": utilisation_document(utilisation),
        "warnings": [warning.to_dict() for warning in found.warnings],
    }


def ratio_row(ratio: LayoutRatio) -> dict[str, Any]:
    """Return one pair's range for one metric; ratios are layout / reference."""
    return {
        "reference": ratio.reference,
        "layout": ratio.layout,
        "metric": ratio.metric,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "direction": ratio.direction,
        "loads": len(ratio.by_load),
        "by_load": [
            {"concurrency": load.concurrency, "request_rate": load.request_rate, "ratio": value}
            for load, value in ratio.by_load.items()
        ],
    }


def render(found: LayoutComparison, utilisation: Mapping[str, Utilisation], width: int) -> Parts:
    """Return one row a pair of layouts: throughput as a factor, latency as a change in percent."""
    metrics = [metric for metric in HEADINGS if any(ratio.metric == metric for ratio in found.ratios)]
    pairs = dict.fromkeys((ratio.reference, ratio.layout) for ratio in found.ratios)
    by_key = {(r.reference, r.layout, r.metric): r for r in found.ratios}
    rows = []
    for reference, layout in pairs:
        ratios = [by_key.get((reference, layout, metric)) for metric in metrics]
        loads = max(len(r.by_load) for r in ratios if r is not None)
        rows.append((f"{layout} over {reference}", *(_range(r) for r in ratios), str(loads)))
    heading = ("layouts", *(HEADINGS[metric] for metric in metrics), "loads")
    parts: list[Any] = [table(heading, rows, name_column=None, width=width), Text()]
    if not found.comparable:
        parts.append(Text("not comparable: see the warnings", style="bold"))
    by_name: dict[str, list[str]] = {}
    for load, (name, _) in found.best.items():
        by_name.setdefault(name, []).append(Group(load, {}, ()).name)
    for name, won in by_name.items():
        where = f"{plural(len(won), 'load')} ({', '.join(won)})"
        parts.append(Text(f"  most tokens/s: {visible(name)} at {where}"))
    return Parts(*parts, *render_utilisation(utilisation, width))


def _range(ratio: LayoutRatio | None) -> str:
    if ratio is None:
        return "n/a"
    if ratio.direction == "higher":
        return f"x {ratio.low:.2f} to {ratio.high:.2f}"
    return f"{(ratio.low - 1) * 100:+.0f} to {(ratio.high - 1) * 100:+.0f} %"
