"""Repeated runs of one configuration, and which groups of two sides belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from traceanalyzer.problems import TraceError
from traceanalyzer.serving.serving_result import UNLIMITED, Load, ServingResult, Setting

LOAD_SETTINGS = ("max_concurrency", "request_rate")
SIDES = ("before", "after")


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs of one side under the same load and settings.

    Attributes:
        load: concurrency and request rate.
        where: other settings that distinguish this group from others of its side.
        results: the runs.
    """

    load: Load
    where: Mapping[str, Setting]
    results: tuple[ServingResult, ...]

    @property
    def name(self) -> str:
        """The group in words, such as ``8 concurrent, table = final``."""
        parts = []
        if self.load.concurrency is not None:
            parts.append(f"{self.load.concurrency:g} concurrent")
        if self.load.request_rate is not None:
            parts.append(f"{self.load.request_rate:g} requests/s")
        parts += [f"{key} = {shown(value)}" for key, value in self.where.items()]
        return ", ".join(parts) or "any load"


def shown(value: Setting | None) -> str:
    """A setting for people; None is ``not stated``."""
    if value is None:
        return "not stated"
    return f"{value:g}" if isinstance(value, float) else str(value)


def select(results: Sequence[ServingResult], wanted: Sequence[str], option: str) -> tuple[ServingResult, ...]:
    """Return the runs whose settings have the values of every ``KEY=VALUE``; TraceError if none is left."""
    kept = list(results)
    for pair_ in wanted:
        key, _, value = pair_.partition("=")
        left = [run for run in kept if key in run.settings and shown(run.settings[key]) == value.strip()]
        if not left:
            known = sorted({shown(run.settings[key]) for run in kept if key in run.settings})
            listed = f"{key} is one of {', '.join(known)}" if known else f"no result has a setting {key}"
            raise TraceError(results[0].source, f"{option} {pair_} leaves no result; {listed}")
        kept = left
    return tuple(kept)


def split_settings(results: Iterable[ServingResult]) -> list[str]:
    """Return the settings that vary among runs of one load, which are then no repetitions of each other."""
    by_load: dict[Load, list[ServingResult]] = {}
    for result in results:
        by_load.setdefault(result.load, []).append(result)
    return sorted({key for runs in by_load.values() for key in _varying(runs)})


def group(results: Iterable[ServingResult], by: Sequence[str] = ()) -> list[RunGroup]:
    """Group runs by load and the named settings, in order of load."""
    by_key: dict[tuple[Load, tuple[Setting | None, ...]], list[ServingResult]] = {}
    for result in results:
        by_key.setdefault((result.load, tuple(result.settings.get(key) for key in by)), []).append(result)
    groups = [
        RunGroup(load, {k: v for k, v in zip(by, values, strict=True) if v is not None}, tuple(runs))
        for (load, values), runs in by_key.items()
    ]
    return sorted(groups, key=_order)


class PairedGroups(NamedTuple):
    """Pairs with one group of each side, and the names of groups without a partner."""

    pairs: list[tuple[RunGroup, RunGroup]]
    single: list[str]


def pair(
    before: Sequence[ServingResult], after: Sequence[ServingResult], names: tuple[str, str] = SIDES
) -> PairedGroups:
    """Pair the groups of two sides, called ``names``, by load and by the settings that vary within a side.

    A single group on each side is a pair whatever its load. Raises TraceError if a side mixes configurations that the
    other one does not tell apart, or no load is common.
    """
    by = sorted({*split_settings(before), *split_settings(after)})
    sides = [group(side, by) for side in (before, after)]
    if len(sides[0]) == len(sides[1]) == 1:
        return PairedGroups([(sides[0][0], sides[1][0])], [])
    for name, groups, others in zip(names, sides, reversed(sides), strict=True):
        _refuse_mixture(name, groups, others, by)
    old, new = ({(g.load, tuple(g.where.get(key) for key in by)): g for g in side} for side in sides)
    common = [key for key in old if key in new]
    if not common:
        listed = "; ".join(f"{name} has {_names(groups)}" for name, groups in zip(names, sides, strict=True))
        raise TraceError(before[0].source, f"no load in common: {listed}")
    single = [
        f"{name}: {one.name}"
        for name, side in zip(names, (old, new), strict=True)
        for key, one in side.items()
        if key not in common
    ]
    return PairedGroups([(old[key], new[key]) for key in common], single)


def _names(groups: Iterable[RunGroup]) -> str:
    return ", ".join(one.name for one in groups)


def _refuse_mixture(name: str, groups: Sequence[RunGroup], others: Sequence[RunGroup], by: Sequence[str]) -> None:
    """Raise TraceError if a side has several values of a setting at one load, of which the other side has none."""
    for key in by:
        values = {g.where.get(key) for g in groups}
        if len(values) > 1 and not values & {g.where.get(key) for g in others}:
            listed = ", ".join(sorted(shown(value) for value in values))
            pick = f"; pick one with --select-{name} {key}=VALUE" if name in SIDES else f" ({name})"
            raise TraceError(
                groups[0].results[0].source,
                f"holds results of the same load with different {key} ({listed}){pick}",
            )


def _varying(runs: Sequence[ServingResult]) -> set[str]:
    keys = {key for run in runs for key in run.settings} - set(LOAD_SETTINGS)
    return {key for key in keys if len({run.settings.get(key) for run in runs}) > 1}


def _order(g: RunGroup) -> tuple[float, float, tuple[str, ...]]:
    limit = g.load.concurrency
    rate = g.load.request_rate
    unlimited = any(run.settings.get("max_concurrency") == UNLIMITED for run in g.results)
    return (
        float("inf") if limit is None and unlimited else limit or 0.0,
        float("inf") if rate is None else rate,
        tuple(f"{value:024.6f}" if isinstance(value, float) else str(value) for value in g.where.values()),
    )
