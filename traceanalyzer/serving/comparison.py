"""Two sides of serving results: what changed, which way, beyond noise or not, and whether the test is fair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.serving.fairness import (
    Difference,
    differences,
    faults,
    unstated,
)
from traceanalyzer.serving.grouping import Group, pair
from traceanalyzer.serving.metrics import Direction, direction, sort_key
from traceanalyzer.serving.noise import (
    LEVEL,
    Estimate,
    difference_half_width,
    estimate,
)
from traceanalyzer.serving.result_checks import check
from traceanalyzer.serving.serving_result import Load, ServingResult, Setting

Verdict = Literal["better", "worse", "same"]

# Without repetitions nothing is known about noise; only a change below this share of the figure counts as none.
SINGLE_RUN_TOLERANCE = 0.001

# Times of a whole run: they say nothing when the sides sent different numbers of requests.
WHOLE_RUN = ("duration", "elapsed_time")


@dataclass(frozen=True, eq=False)
class Change:
    """One metric at one load.

    Attributes:
        metric: key of ``vllm bench``.
        load, where: the load, and other settings that tell this row from others.
        before, after: null where the side does not have the figure.
        percent: change of the mean in percent of ``before``; null where a side is missing or ``before`` is 0.
        percent_low, percent_high: its confidence interval; null without repeated runs.
        direction: which way is good.
        verdict: null where a side is missing or the sides did not do the same work.
    """

    metric: str
    load: Load
    where: Mapping[str, Setting]
    before: Estimate | None
    after: Estimate | None
    percent: float | None
    percent_low: float | None
    percent_high: float | None
    direction: Direction
    verdict: Verdict | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything ``compare`` found.

    Attributes:
        comparable: whether all requests succeeded and both sides had the same work at every load compared.
        differences: settings that differ, with their values.
        changes: in order of load, then metric.
        method: how verdicts were reached, in a sentence.
        warnings: what the reader should know before believing the changes.
        pairs: the groups of runs compared.
    """

    comparable: bool
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    method: str
    warnings: tuple[TraceWarning, ...]
    pairs: tuple[tuple[Group, Group], ...]


def compare(before: Sequence[ServingResult], after: Sequence[ServingResult]) -> Comparison:
    """Compare two sides, load by load.

    Raises:
        TraceError: a side is empty, mixes configurations, or no load is common to both.
    """
    if not before or not after:
        raise TraceError("before" if not before else "after", "holds no serving result")
    if {r.kind for r in before} != {r.kind for r in after}:
        kinds = " and ".join(f"bench {'/'.join(sorted({r.kind for r in side}))}" for side in (before, after))
        raise TraceError(after[0].source, f"cannot be compared: the sides are of different benchmarks ({kinds})")
    pairs, single = pair(before, after)
    broken = [faults(b, a) for b, a in pairs]
    changes = tuple(row for (b, a), told in zip(pairs, broken, strict=True) for row in _changes(b, a, fair=not told))
    warnings = [*dict.fromkeys(w for told in broken for w in told), *unstated(pairs), *_unpaired(single)]
    warnings += [w for result in (*before, *after) for w in check(result)]
    return Comparison(
        comparable=not any(broken),
        differences=differences(pairs),
        changes=changes,
        method=_method(pairs),
        warnings=tuple(warnings),
        pairs=tuple(pairs),
    )


def estimates(group: Group, metric: str) -> Estimate | None:
    """Average a metric over the runs of a group that have it; null when none has."""
    values = [run.metrics[metric] for run in group.results if metric in run.metrics]
    if not values:
        return None
    return estimate(values, max(run.resolution.get(metric, 0.0) for run in group.results))


def _changes(before: Group, after: Group, *, fair: bool) -> list[Change]:
    keys = {key for side in (before, after) for run in side.results for key in run.metrics}
    same_prompts = len({run.prompts for side in (before, after) for run in side.results}) == 1
    rows = []
    for metric in sorted(keys, key=sort_key):
        good = direction(metric)
        if good is not None:
            judged = fair and (same_prompts or metric not in WHOLE_RUN)
            rows.append(_change(metric, before, estimates(before, metric), estimates(after, metric), good, judged))
    return rows


def _change(
    metric: str, group: Group, before: Estimate | None, after: Estimate | None, good: Direction, judged: bool
) -> Change:
    percent = low = high = None
    verdict: Verdict | None = None
    if before is not None and after is not None:
        delta = after.mean - before.mean
        half = difference_half_width(before, after)
        if before.mean != 0:
            percent = delta / before.mean * 100
            if half is not None:
                spread = half / abs(before.mean) * 100
                low, high = percent - spread, percent + spread
        verdict = _verdict(delta, before, after, half, good) if judged else None
    return Change(metric, group.load, group.where, before, after, percent, low, high, good, verdict)


def _verdict(delta: float, before: Estimate, after: Estimate, half: float | None, good: Direction) -> Verdict:
    noise = SINGLE_RUN_TOLERANCE * abs(before.mean) if half is None else half
    if delta == 0 or abs(delta) <= max(noise, before.resolution + after.resolution):
        return "same"
    return "better" if (delta > 0) == (good == "higher") else "worse"


def _method(pairs: Iterable[tuple[Group, Group]]) -> str:
    runs = [(len(b.results), len(a.results)) for b, a in pairs]
    if all(b == a == 1 for b, a in runs):
        return (
            "each side is a single run, so its noise is unknown: verdicts go by the sign of the change "
            f"({SINGLE_RUN_TOLERANCE:.1%}, or the last digit of rounded text, counts as none); repeat the runs to know "
            "which changes are real"
        )
    told = (
        f"mean of repeated runs with its {LEVEL:.0%} confidence interval (Student's t); a change is 'same' when the "
        f"{LEVEL:.0%} interval of the difference (Welch) contains 0"
    )
    if any(b == 1 or a == 1 for b, a in runs):
        told += "; a single run is taken to scatter as the other side's runs do, two single runs go by sign"
    return told


def _unpaired(names: Sequence[str]) -> list[TraceWarning]:
    if not names:
        return []
    return [TraceWarning("unpaired", f"on one side only, not compared: {'; '.join(names)}", count=len(names))]
