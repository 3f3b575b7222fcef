"""The comparison of parallel layouts as a JSON document and as text: ranges of ratios over the loads."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from traceanalyzer.commands.serving.layouts import ServingLayouts
from traceanalyzer.commands.serving.result import LayoutRatio, ServingLayoutsDocument
from traceanalyzer.commands.serving.view import render_utilisation
from traceanalyzer.serving.grouping import RunGroup
from traceanalyzer.serving.serving_result import Load
from traceanalyzer.serving.utilisation import Utilisation, gpu_rows
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural, visible

HEADINGS = {
    "request_throughput": "req/s",
    "output_throughput": "tokens/s",
    "mean_ttft_ms": "TTFT",
    "mean_itl_ms": "ITL",
    "mean_tpot_ms": "TPOT",
}


def document(compared: ServingLayouts, utilisation: Mapping[str, Utilisation]) -> ServingLayoutsDocument:
    """Return the JSON document of ``serving compare --layouts``."""
    return ServingLayoutsDocument(
        layouts=list(compared.names),
        comparable=compared.comparable,
        ratios=list(compared.ratios),
        best=list(compared.best),
        utilisation=gpu_rows(utilisation),
        warnings=list(compared.warnings),
    )


def render(compared: ServingLayouts, utilisation: Mapping[str, Utilisation], width: int) -> Group:
    """Return one row per pair of layouts: throughput as a factor, latency as a change in percent."""
    by_pair: dict[tuple[str, str], dict[str, LayoutRatio]] = {}
    for ratio in compared.ratios:
        by_pair.setdefault((ratio.layout, ratio.reference), {})[ratio.metric] = ratio
    metrics = [metric for metric in HEADINGS if any(metric in ratios for ratios in by_pair.values())]
    rows = [
        (
            f"{layout} over {reference}",
            *(_range(ratios.get(metric)) for metric in metrics),
            str(max(ratio.loads for ratio in ratios.values())),
        )
        for (layout, reference), ratios in by_pair.items()
    ]
    heading = ("layouts", *(HEADINGS[metric] for metric in metrics), "loads")
    parts: list[RenderableType] = [table(heading, rows, name_column=None, width=width), Text()]
    if not compared.comparable:
        parts.append(Text("not comparable: see the warnings", style="bold"))
    best_at: dict[str, list[str]] = {}
    for best in compared.best:
        load = RunGroup(Load(best.concurrency, best.request_rate), {}, ()).name
        best_at.setdefault(best.layout, []).append(load)
    for name, loads in best_at.items():
        parts.append(Text(f"  most tokens/s: {visible(name)} at {plural(len(loads), 'load')} ({', '.join(loads)})"))
    return Group(*parts, *render_utilisation(utilisation, width))


def _range(ratio: LayoutRatio | None) -> str:
    if ratio is None:
        return "n/a"
    if ratio.direction == "higher":
        return f"x {ratio.ratio_low:.2f} to {ratio.ratio_high:.2f}"
    return f"{(ratio.ratio_low - 1) * 100:+.0f} to {(ratio.ratio_high - 1) * 100:+.0f} %"
