"""Whether two groups of runs did the same work: failed requests, settings that differ, lengths that differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean

from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.grouping import SIDES, RunGroup, shown
from traceanalyzer.serving.serving_result import ServingResult, Setting

# Settings that say what work was done; others (model, parallelism, flags) are what a comparison is about.
WORKLOAD = re.compile(
    r"request_rate|burstiness|max_concurrency|ramp_up_.*|dataset.*|.*(input|output|prefix|suffix)_len.*|.*range_ratio|"
    r"ignore_eos|isl|osl|batch_size|seed"
)
LENGTH_TOLERANCE = 0.05
"""Mean lengths further apart than this share are different work; chosen, not fitted."""


@dataclass(frozen=True)
class Difference:
    """A setting whose values differ; several values where it varies over the loads compared."""

    setting: str
    before: tuple[Setting, ...]
    after: tuple[Setting, ...]


def faults(before: RunGroup, after: RunGroup, names: tuple[str, str] = SIDES) -> list[TraceWarning]:
    """Tell why two groups are not comparable, if they are not; ``names`` is what to call them."""
    return [*_failures(before, after, names), *_unlike_work(before, after, names)]


def _failures(before: RunGroup, after: RunGroup, names: tuple[str, str]) -> list[TraceWarning]:
    """Tell the requests that failed, for each side and run."""
    return [
        TraceWarning(
            "failed_requests",
            f"{name}: {_failed(run)}; the figures cover only those that succeeded, so the sides are not comparable",
            run.where,
            count=run.failed,
        )
        for name, group in zip(names, (before, after), strict=True)
        for run in group.results
        if run.has_failures
    ]


def _failed(run: ServingResult) -> str:
    if run.failed is None:
        return f"{1 - (run.success or 0.0):.1%} of the requests failed"
    of = f" of {run.prompts:,}" if run.prompts else ""
    done = f" ({run.completed:,} completed)" if run.prompts and run.completed is not None else ""
    return f"{run.failed:,}{of} requests failed{done}"


def _unlike_work(before: RunGroup, after: RunGroup, names: tuple[str, str]) -> list[TraceWarning]:
    """Tell settings of the workload that differ, and mean lengths more than 5 % apart."""
    first, second = names
    unlike = [
        f"{d.setting} differs ({_list(d.before)} {first}, {_list(d.after)} {second})"
        for d in _differences(before, after)
        if WORKLOAD.fullmatch(d.setting)
    ]
    # Where requests failed, the lengths are those of the others.
    if not any(run.has_failures for group in (before, after) for run in group.results):
        for what, length in (("prompt", attrgetter("input_length")), ("output", attrgetter("output_length"))):
            b, a = _mean(before.results, length), _mean(after.results, length)
            if b and a and abs(a - b) > LENGTH_TOLERANCE * max(a, b):
                unlike.append(f"the mean {what} length differs ({b:.4g} tokens {first}, {a:.4g} {second})")
    return [
        TraceWarning("different_workload", f"{what}; the sides did different work and are not comparable")
        for what in unlike
    ]


def differences(pairs: Iterable[tuple[RunGroup, RunGroup]]) -> tuple[Difference, ...]:
    """Collect the settings that differ, over all pairs."""
    by_key: dict[str, tuple[dict[Setting, None], dict[Setting, None]]] = {}
    for before, after in pairs:
        for d in _differences(before, after):
            values = by_key.setdefault(d.setting, ({}, {}))
            values[0].update(dict.fromkeys(d.before))
            values[1].update(dict.fromkeys(d.after))
    return tuple(Difference(key, tuple(b), tuple(a)) for key, (b, a) in sorted(by_key.items()))


def unstated(pairs: Sequence[tuple[RunGroup, RunGroup]]) -> list[TraceWarning]:
    """Tell which settings only one side states, so that a difference cannot be excluded."""
    keys: dict[str, set[str]] = {"before": set(), "after": set()}
    for before, after in pairs:
        known = [{key for run in side.results for key in run.settings} for side in (before, after)]
        keys["before"] |= known[0] - known[1]
        keys["after"] |= known[1] - known[0]
    listed = [f"{', '.join(sorted(names))} ({side})" for side, names in keys.items() if names]
    if not listed:
        return []
    return [TraceWarning("setting_on_one_side", f"stated on one side only, so it may differ: {'; '.join(listed)}")]


def _differences(before: RunGroup, after: RunGroup) -> list[Difference]:
    """Compare what both sides state; ``num_prompts`` counts as a setting here."""
    sides = [[_stated(run) for run in group.results] for group in (before, after)]
    keys = {key for runs in sides for run in runs for key in run}
    differing = []
    for key in sorted(keys):
        b, a = ({run[key]: None for run in runs if key in run} for runs in sides)
        if b and a and b.keys() != a.keys():
            differing.append(Difference(key, tuple(b), tuple(a)))
    return differing


def _stated(run: ServingResult) -> dict[str, Setting]:
    prompts: dict[str, Setting] = {} if run.prompts is None else {"num_prompts": float(run.prompts)}
    return {**run.settings, **prompts}


def _mean(runs: Iterable[ServingResult], length: Callable[[ServingResult], float | None]) -> float | None:
    known = [value for value in map(length, runs) if value is not None]
    return fmean(known) if known else None


def _list(values: Iterable[Setting]) -> str:
    return ", ".join(shown(value) for value in values)
