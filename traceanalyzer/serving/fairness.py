"""Whether two groups of runs did the same work: failed requests, settings that differ, lengths that differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any

from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.grouping import SIDES, RunGroup, shown
from traceanalyzer.serving.result import DifferingSetting
from traceanalyzer.serving.serving_result import ServingResult, Setting

# Settings of the work that was done; a comparison is about the others (model, parallelism, flags).
WORKLOAD = re.compile(
    r"request_rate|burstiness|max_concurrency|ramp_up_.*|dataset.*|.*(input|output|prefix|suffix)_len.*|.*range_ratio|"
    r"ignore_eos|isl|osl|batch_size|seed"
)
LENGTH_TOLERANCE = 0.05
"""Difference of mean lengths, as a share, above which the work differs; chosen, not fitted."""


Values = tuple[Setting, ...]
"""What a side states of a setting; several values where it varies over the loads compared."""


def faults(before: RunGroup, after: RunGroup, names: tuple[str, str] = SIDES) -> list[TraceWarning]:
    """Return why two groups, called ``names``, are not comparable: failed requests, and work that differs."""
    failures = [
        TraceWarning(
            "failed_requests",
            f"{name}: {_failed(run)}; the figures cover only successful requests, so the sides are not comparable",
            run.where,
            count=run.failed,
        )
        for name, group in zip(names, (before, after), strict=True)
        for run in group.results
        if run.has_failures
    ]
    return [*failures, *_unlike_work(before, after, names)]


def _failed(run: ServingResult) -> str:
    if run.failed is None:
        return f"{1 - (run.success or 0.0):.1%} of the requests failed"
    of = f" of {run.prompts:,}" if run.prompts else ""
    done = f" ({run.completed:,} completed)" if run.prompts and run.completed is not None else ""
    return f"{run.failed:,}{of} requests failed{done}"


def _unlike_work(before: RunGroup, after: RunGroup, names: tuple[str, str]) -> list[TraceWarning]:
    """Return a warning for each setting of the workload, and each mean length, that differs."""
    first, second = names
    unlike = [
        f"{setting} differs ({_list(old)} {first}, {_list(new)} {second})"
        for setting, (old, new) in _differences(before, after).items()
        if WORKLOAD.fullmatch(setting)
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


def differing_settings(pairs: Iterable[tuple[RunGroup, RunGroup]]) -> list[DifferingSetting]:
    """Return the settings that differ, over all pairs."""
    by_key: dict[str, tuple[dict[Setting, None], dict[Setting, None]]] = {}
    for pair in pairs:
        for key, sides in _differences(*pair).items():
            for known, values in zip(by_key.setdefault(key, ({}, {})), sides, strict=True):
                known.update(dict.fromkeys(values))
    return [
        DifferingSetting(setting=key, before=_one_or_all(b), after=_one_or_all(a))
        for key, (b, a) in sorted(by_key.items())
    ]


def _one_or_all(values: Iterable[Setting]) -> Any:
    listed = list(values)
    return listed[0] if len(listed) == 1 else listed


def unstated(pairs: Sequence[tuple[RunGroup, RunGroup]]) -> list[TraceWarning]:
    """Return a warning about settings that only one side states, which may differ."""
    keys: dict[str, set[str]] = {"before": set(), "after": set()}
    for before, after in pairs:
        known = [{key for run in side.results for key in run.settings} for side in (before, after)]
        keys["before"] |= known[0] - known[1]
        keys["after"] |= known[1] - known[0]
    listed = [f"{', '.join(sorted(names))} ({side})" for side, names in keys.items() if names]
    if not listed:
        return []
    return [TraceWarning("setting_on_one_side", f"stated on one side only, so it may differ: {'; '.join(listed)}")]


def _differences(before: RunGroup, after: RunGroup) -> dict[str, tuple[Values, Values]]:
    """Return the settings stated by both sides that differ; ``num_prompts`` counts as one here."""
    sides = [[_stated(run) for run in group.results] for group in (before, after)]
    differing = {}
    for key in sorted({key for runs in sides for run in runs for key in run}):
        b, a = ({run[key]: None for run in runs if key in run} for runs in sides)
        if b and a and b.keys() != a.keys():
            differing[key] = (tuple(b), tuple(a))
    return differing


def _stated(run: ServingResult) -> dict[str, Setting]:
    prompts: dict[str, Setting] = {} if run.prompts is None else {"num_prompts": float(run.prompts)}
    return {**run.settings, **prompts}


def _mean(runs: Iterable[ServingResult], length: Callable[[ServingResult], float | None]) -> float | None:
    known = [value for value in map(length, runs) if value is not None]
    return fmean(known) if known else None


def _list(values: Iterable[Setting]) -> str:
    return ", ".join(shown(value) for value in values)
