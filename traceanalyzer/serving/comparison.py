"""Two sides of serving results: what changed, better or worse, beyond noise or not, and whether the test is fair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.serving.fairness import differing_settings, faults, unstated
from traceanalyzer.serving.grouping import RunGroup, pair
from traceanalyzer.serving.metrics import Direction, direction, sort_key
from traceanalyzer.serving.noise import LEVEL, RunMean, difference_half_width, estimate
from traceanalyzer.serving.result import GpuUtilisation, MetricChange, ServingDocument, Verdict
from traceanalyzer.serving.result_checks import check
from traceanalyzer.serving.serving_result import ServingResult

SINGLE_RUN_TOLERANCE = 0.001
"""Change, as a share of the figure, below which single runs count as the same; chosen, not fitted."""

WHOLE_RUN = ("duration", "elapsed_time")
"""Times of a whole run: they say nothing when the sides sent different numbers of requests."""


def compare(
    before: Sequence[ServingResult], after: Sequence[ServingResult], utilisation: Sequence[GpuUtilisation] = ()
) -> ServingDocument:
    """Compare two sides, load by load; the averages of their GPU utilisation are passed on.

    Raises:
        TraceError: a side is empty, mixes configurations, or no load is common to both.
    """
    _refuse_unlike(before, after)
    paired = pair(before, after)
    unfair = [faults(old, new) for old, new in paired.pairs]
    changes: list[MetricChange] = []
    for (old, new), against in zip(paired.pairs, unfair, strict=True):
        changes += _changes(old, new, fair=not against)
    warnings = list(dict.fromkeys(warning for against in unfair for warning in against))
    warnings += [*unstated(paired.pairs), *_unpaired(paired.single)]
    warnings += [w for result in (*before, *after) for w in check(result)]
    return ServingDocument(
        comparable=not any(unfair),
        differing_settings=differing_settings(paired.pairs),
        metrics=changes,
        method=_method(paired.pairs),
        utilisation=list(utilisation),
        warnings=warnings,
    )


def _refuse_unlike(before: Sequence[ServingResult], after: Sequence[ServingResult]) -> None:
    """Raise TraceError if a side is empty or the sides are of different benchmarks."""
    if not before or not after:
        raise TraceError("before" if not before else "after", "holds no serving result")
    if {r.kind for r in before} != {r.kind for r in after}:
        kinds = " and ".join(f"bench {'/'.join(sorted({r.kind for r in side}))}" for side in (before, after))
        raise TraceError(after[0].source, f"cannot be compared: the sides are of different benchmarks ({kinds})")


def mean_of(group: RunGroup, metric: str) -> RunMean | None:
    """Return the mean of a metric over the runs of a group that have it; None if none has."""
    values = [run.metrics[metric] for run in group.results if metric in run.metrics]
    if not values:
        return None
    return estimate(values, max(run.resolution.get(metric, 0.0) for run in group.results))


def _changes(before: RunGroup, after: RunGroup, *, fair: bool) -> list[MetricChange]:
    keys = {key for side in (before, after) for run in side.results for key in run.metrics}
    same_prompts = len({run.prompts for side in (before, after) for run in side.results}) == 1
    rows = []
    for metric in sorted(keys, key=sort_key):
        good = direction(metric)
        if good is not None:
            judged = fair and (same_prompts or metric not in WHOLE_RUN)
            rows.append(_change(metric, before, after, good, judged=judged))
    return rows


def _change(metric: str, before: RunGroup, after: RunGroup, good: Direction, *, judged: bool) -> MetricChange:
    old, new = mean_of(before, metric), mean_of(after, metric)
    percent = low = high = None
    verdict: Verdict | None = None
    if old is not None and new is not None:
        delta = new.mean - old.mean
        half = difference_half_width(old, new)
        if old.mean != 0:
            percent = delta / old.mean * 100
            if half is not None:
                spread = half / abs(old.mean) * 100
                low, high = percent - spread, percent + spread
        verdict = _verdict(delta, old, new, half, good) if judged else None
    return MetricChange(
        **before.load._asdict(),
        metric=metric,
        before=old.mean if old else None,
        after=new.mean if new else None,
        change_percent=percent,
        change_percent_low=low,
        change_percent_high=high,
        direction=good,
        verdict=verdict,
        where=dict(before.where),
        runs_before=old.runs if old else 0,
        runs_after=new.runs if new else 0,
        half_width_before=old.half_width if old else None,
        half_width_after=new.half_width if new else None,
    )


def _verdict(delta: float, before: RunMean, after: RunMean, half: float | None, good: Direction) -> Verdict:
    noise = SINGLE_RUN_TOLERANCE * abs(before.mean) if half is None else half
    if delta == 0 or abs(delta) <= max(noise, before.resolution + after.resolution):
        return "same"
    return "better" if (delta > 0) == (good == "higher") else "worse"


def _method(pairs: Iterable[tuple[RunGroup, RunGroup]]) -> str:
    runs = [(len(b.results), len(a.results)) for b, a in pairs]
    if all(b == a == 1 for b, a in runs):
        return (
            "each side is a single run, so noise is unknown: the verdict is the sign of the change (up to "
            f"{SINGLE_RUN_TOLERANCE:.1%}, or the last digit of rounded text, is 'same'); repeat the runs to see which "
            "changes are real"
        )
    method = (
        f"means of repeated runs with {LEVEL:.0%} confidence intervals (Student's t); a change is 'same' if the "
        f"{LEVEL:.0%} interval of the difference (Welch) contains 0"
    )
    if any(b == 1 or a == 1 for b, a in runs):
        method += "; a single run is assumed to vary like the other side's runs; of two single runs the sign decides"
    return method


def _unpaired(names: Sequence[str]) -> list[TraceWarning]:
    if not names:
        return []
    return [TraceWarning("unpaired", f"on one side only, not compared: {'; '.join(names)}", count=len(names))]
