"""Parallel layouts (TP, PP, EP, ...) side by side: for each pair, the range of ratios over the loads both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from traceanalyzer.commands.serving.result import BestLayout, LayoutRatio, RatioAtLoad, ServingLayoutsDocument
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.serving.comparison import mean_of
from traceanalyzer.serving.fairness import faults
from traceanalyzer.serving.grouping import RunGroup, pair
from traceanalyzer.serving.metrics import direction
from traceanalyzer.serving.result import GpuUtilisation
from traceanalyzer.serving.result_checks import check
from traceanalyzer.serving.serving_result import Load, ServingResult

METRICS = ("request_throughput", "output_throughput", "mean_ttft_ms", "mean_itl_ms", "mean_tpot_ms")


def compare_layouts(
    layouts: Mapping[str, tuple[ServingResult, ...]],
    reference: str | None = None,
    utilisation: Sequence[GpuUtilisation] = (),
) -> ServingLayoutsDocument:
    """Compare layouts pairwise, each later one against each earlier one, or all against ``reference``.

    Raises:
        TraceError: there are fewer than two, the reference is not among them, or two have no load in common.
    """
    if len(layouts) < 2:
        raise TraceError("layouts", "at least two are needed")
    if reference is not None and reference not in layouts:
        raise TraceError(reference, f"is not one of the layouts ({', '.join(layouts)})")
    names = combinations(layouts, 2) if reference is None else [(reference, n) for n in layouts if n != reference]
    ratios: list[LayoutRatio] = []
    warnings: dict[TraceWarning, None] = {}
    comparable = True
    for before, after in names:
        paired = pair(layouts[before], layouts[after], (before, after))
        odd = [warning for two in paired.pairs for warning in faults(*two, (before, after))]
        comparable = comparable and not odd
        if paired.single:
            message = f"{before} and {after}: not in both, left out: {'; '.join(paired.single)}"
            odd.append(TraceWarning("unpaired", message, count=len(paired.single)))
        warnings.update(dict.fromkeys(odd))
        ratios += _ratios(before, after, paired.pairs)
    for runs in layouts.values():
        warnings.update(dict.fromkeys(w for run in runs for w in check(run)))
    return ServingLayoutsDocument(
        layouts=list(layouts),
        comparable=comparable,
        ratios=ratios,
        best=_best(layouts),
        utilisation=list(utilisation),
        warnings=list(warnings),
    )


def _ratios(reference: str, layout: str, pairs: Sequence[tuple[RunGroup, RunGroup]]) -> list[LayoutRatio]:
    ratios = []
    for metric in METRICS:
        by_load: dict[Load, float] = {}
        for before, after in pairs:
            b, a = mean_of(before, metric), mean_of(after, metric)
            if b is not None and a is not None and b.mean > 0:
                by_load[before.load] = a.mean / b.mean
        good = direction(metric)
        if by_load and good is not None:
            ratios.append(
                LayoutRatio(
                    reference=reference,
                    layout=layout,
                    metric=metric,
                    ratio_low=min(by_load.values()),
                    ratio_high=max(by_load.values()),
                    direction=good,
                    loads=len(by_load),
                    by_load=[RatioAtLoad(**load._asdict(), ratio=ratio) for load, ratio in by_load.items()],
                )
            )
    return ratios


def _best(layouts: Mapping[str, Sequence[ServingResult]]) -> list[BestLayout]:
    """Return the layout with the most output tokens/s at each load that at least two layouts ran."""
    speeds: dict[Load, dict[str, list[float]]] = {}
    for name, runs in layouts.items():
        for run in runs:
            if "output_throughput" in run.metrics and not run.has_failures:
                speeds.setdefault(run.load, {}).setdefault(name, []).append(run.metrics["output_throughput"])
    best = []
    for load in sorted(speeds, key=lambda load: (load.concurrency or 0, load.request_rate or 0)):
        means = {name: sum(values) / len(values) for name, values in speeds[load].items()}
        if len(means) > 1:
            name = max(means, key=means.__getitem__)
            best.append(BestLayout(**load._asdict(), layout=name, output_throughput=means[name]))
    return best
