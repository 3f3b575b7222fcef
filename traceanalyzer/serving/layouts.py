"""Parallel layouts (TP, PP, EP, ...) side by side: for each pair, the range of ratios over the loads both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.serving.comparison import estimates
from traceanalyzer.serving.fairness import faults
from traceanalyzer.serving.grouping import Group, pair
from traceanalyzer.serving.metrics import Direction, direction
from traceanalyzer.serving.result_checks import check
from traceanalyzer.serving.serving_result import Load, ServingResult

METRICS = ("request_throughput", "output_throughput", "mean_ttft_ms", "mean_itl_ms", "mean_tpot_ms")


@dataclass(frozen=True, eq=False)
class LayoutRatio:
    """One metric of ``layout`` over that of ``reference``.

    Attributes:
        low, high: smallest and largest ratio over the loads that both layouts have.
        by_load: the ratio at each.
        direction: which way is good.
    """

    reference: str
    layout: str
    metric: str
    low: float
    high: float
    by_load: Mapping[Load, float]
    direction: Direction


@dataclass(frozen=True, eq=False)
class LayoutComparison:
    """Every pair of layouts, in the order given; ``best`` names the layout with the most tokens/s at each load."""

    layouts: Mapping[str, tuple[ServingResult, ...]]
    ratios: tuple[LayoutRatio, ...]
    best: Mapping[Load, tuple[str, float]]
    comparable: bool
    warnings: tuple[TraceWarning, ...]


def compare_layouts(layouts: Mapping[str, tuple[ServingResult, ...]], reference: str | None = None) -> LayoutComparison:
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
        pairs, single = pair(layouts[before], layouts[after], (before, after))
        told = [warning for two in pairs for warning in faults(*two, (before, after))]
        comparable = comparable and not told
        if single:
            message = f"{before} and {after}: not in both, left out: {'; '.join(single)}"
            told.append(TraceWarning("unpaired", message, count=len(single)))
        warnings.update(dict.fromkeys(told))
        ratios += _ratios(before, after, pairs)
    for runs in layouts.values():
        warnings.update(dict.fromkeys(w for run in runs for w in check(run)))
    return LayoutComparison(layouts, tuple(ratios), _best(layouts), comparable, tuple(warnings))


def _ratios(reference: str, layout: str, pairs: Sequence[tuple[Group, Group]]) -> list[LayoutRatio]:
    found = []
    for metric in METRICS:
        by_load: dict[Load, float] = {}
        for before, after in pairs:
            b, a = estimates(before, metric), estimates(after, metric)
            if b is not None and a is not None and b.mean > 0:
                by_load[before.load] = a.mean / b.mean
        good = direction(metric)
        if by_load and good is not None:
            found.append(
                LayoutRatio(reference, layout, metric, min(by_load.values()), max(by_load.values()), by_load, good)
            )
    return found


def _best(layouts: Mapping[str, Sequence[ServingResult]]) -> dict[Load, tuple[str, float]]:
    """Find the layout with the most output tokens/s at each load that at least two layouts ran."""
    speeds: dict[Load, dict[str, list[float]]] = {}
    for name, runs in layouts.items():
        for run in runs:
            if "output_throughput" in run.metrics and not run.has_failures:
                speeds.setdefault(run.load, {}).setdefault(name, []).append(run.metrics["output_throughput"])
    means = {load: {n: sum(v) / len(v) for n, v in by_name.items()} for load, by_name in speeds.items()}
    return {
        load: max(by_name.items(), key=lambda item: item[1])
        for load, by_name in sorted(
            means.items(), key=lambda item: (item[0].concurrency or 0, item[0].request_rate or 0)
        )
        if len(by_name) > 1
    }
