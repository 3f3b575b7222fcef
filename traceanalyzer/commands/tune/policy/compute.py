"""From a sweep to a rule that is short enough to write down: which configuration for which m."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.policy.result import PolicyRegret
from traceanalyzer.commands.tune.tile_config import TileConfig, Value
from traceanalyzer.problems import TraceError, TraceWarning

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DEFAULT_MAX_REGRET = 0.05
"""Share by which a rule may be slower than the fastest; chosen, not fitted."""
_EXACT = 1e-9
"""Regrets that differ by less are equal: far above rounding, far below what can be measured. Chosen."""


@dataclass(frozen=True)
class Rule:
    """One case of a policy.

    Attributes:
        min_m: the smallest m it holds for.
        max_m: the largest; ``None`` where there is no limit.
        config: what is set, known parameters only.
    """

    min_m: int
    max_m: int | None
    config: TileConfig

    def holds(self, m: int) -> bool:
        """Return whether the rule is for this m."""
        return self.min_m <= m and (self.max_m is None or m <= self.max_m)


@dataclass(frozen=True)
class Policy:
    """Rules that cover every m, ascending, without gaps.

    Attributes:
        rules: the cases.
        choices: what the rules cost at each measured m, ascending; empty for rules that were read from a file.
        kernel: what was tuned, where known.
        shape: the rest of the problem (n, k, dtype, experts, top_k), as far as known.
        device: name and target, as far as known.
        versions: of the software that was measured, as far as known.
        rows: what m counts: ``rows``, or ``requests`` where no top-k was known.
        warnings: what was left out, counted.
        source: the file it comes from.
    """

    rules: tuple[Rule, ...]
    choices: tuple[PolicyRegret, ...] = ()
    kernel: str | None = None
    shape: Mapping[str, Value] = field(default_factory=dict)
    device: Mapping[str, str | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: str = "rows"
    warnings: tuple[TraceWarning, ...] = ()
    source: str = ""

    def config(self, m: int) -> TileConfig:
        """Return the configuration for m rows, at least 1."""
        return next(rule.config for rule in self.rules if rule.holds(m))


def make_policy(sweep: Sweep, max_regret: float = DEFAULT_MAX_REGRET) -> Policy:
    """Return the fewest rules that lose at most a share of ``max_regret`` at every measured m of one problem.

    A rule is one configuration for one range of m. Among policies with the fewest rules the one with the lowest total
    regret is taken, then the one that splits at the smallest m, then the configuration that comes first in the sweep.
    Found by dynamic programming over the measured m; a configuration can serve a range only if it ran at every m
    in it. The boundary between two rules lies after the last m measured for the lower one.

    Raises:
        TraceError: there is no timing, m is unknown, or the sweep holds several problems.
    """
    points, rows, warnings = _with_rows(sweep)
    _check_one_problem(sweep.source, points)
    table, missing = _table(points)
    if not table:
        raise TraceError(sweep.source, "holds no timing, so there is nothing to choose from")
    if missing:
        at = ", ".join(map(str, missing[:8]))
        warnings += (TraceWarning("m_without_timing", f"no configuration ran at m = {at}", sweep.source, len(missing)),)
    configs = list(dict.fromkeys(config for row in table.values() for config in row))
    place = {config: number for number, config in enumerate(configs)}
    ranges = _fewest_ranges(_regrets(table, configs), max_regret)
    sizes = list(table)
    rules: list[Rule] = []
    choices: list[PolicyRegret] = []
    for number, (first, last, column) in enumerate(ranges):
        low = 1 if number == 0 else sizes[ranges[number - 1][1]] + 1
        high = None if number == len(ranges) - 1 else sizes[last]
        rules.append(Rule(low, high, configs[column]))
        for m in sizes[first : last + 1]:
            best = min(table[m], key=lambda config: (table[m][config], place[config]))
            chosen_ms, best_ms = table[m][configs[column]], table[m][best]
            regret = chosen_ms / best_ms - 1
            choices.append(
                PolicyRegret(m=m, chosen_ms=chosen_ms, best_ms=best_ms, regret=regret, best_config=dict(best))
            )
    sample = points[0]
    shape = {key: value for key, value in sample.shape.items() if value is not None}
    return Policy(
        tuple(rules),
        tuple(choices),
        sample.kernel,
        shape,
        sample.device,
        sample.versions,
        rows,
        warnings,
        sweep.source,
    )


def _with_rows(sweep: Sweep) -> tuple[list[SweepPoint], str, tuple[TraceWarning, ...]]:
    """Return the points that say how many rows they are for; where none does, requests take their place."""
    tried = _tried(sweep)
    with_m = [point for point in tried if point.m is not None]
    if with_m:
        left_out = len(tried) - len(with_m)
        told = TraceWarning("m_unknown", f"{left_out} points have no m and were left out", sweep.source, left_out)
        return with_m, "rows", (told,) if left_out else ()
    by_requests = [replace(point, m=point.concurrency) for point in tried if point.concurrency is not None]
    if by_requests:
        text = "without --top-k, m counts concurrent requests, not rows of the product"
        return by_requests, "requests", (TraceWarning("m_is_concurrency", text, sweep.source),)
    reason = "does not say how many rows (m) it measured" if tried else "holds no timing"
    raise TraceError(sweep.source, f"{reason}; a policy needs timings at known m")


def _tried(sweep: Sweep) -> list[SweepPoint]:
    """Return the points that a GPU was asked to run.

    Raises:
        TraceError: everything ran without a GPU.
    """
    tried = [point for point in sweep.points if point.measured and (point.rounds or point.reason)]
    if not tried and any(point.rounds for point in sweep.points):
        raise TraceError(sweep.source, "was made without a GPU (interpreter): its times mean nothing")
    return tried


def _check_one_problem(source: str, points: Sequence[SweepPoint]) -> None:
    """Raise a TraceError for points that are not alternatives to each other."""
    problems: dict[tuple[str, ...], SweepPoint] = {}
    for point in points:
        problems.setdefault(point.problem, point)
    if len(problems) > 1:
        first, second = list(problems.values())[:2]
        raise TraceError(
            source,
            f"holds {len(problems)} problems, and a rule is for one; pick one with --where "
            f"(they differ in {', '.join(differences(first, second))})",
        )


def differences(first: SweepPoint, second: SweepPoint) -> list[str]:
    """Return in what two problems differ, as ``key=value or key=value``."""
    sides = [point_facts(point) for point in (first, second)]
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return [
        f"{key}={sides[0].get(key, 'unknown')} or {sides[1].get(key, 'unknown')}"
        for key in keys
        if sides[0].get(key) != sides[1].get(key) and key not in {"m", "concurrency"}
    ]


def point_facts(point: SweepPoint) -> dict[str, Value]:
    """Return everything known of a point but its configuration, by the names that ``--where`` takes."""
    named: dict[str, Any] = {
        "kernel": point.kernel,
        "backend": point.backend,
        "routing": point.routing,
        "m": point.m,
        "concurrency": point.concurrency,
        "device": point.device.get("name"),
        **{key: value for key, value in point.device.items() if key != "name"},
        **point.versions,
        **point.shape,
    }
    return {key: value for key, value in named.items() if value is not None}


def select(sweep: Sweep, wanted: Mapping[str, str]) -> Sweep:
    """Return the points whose facts are as wanted; see ``point_facts`` for the names.

    Raises:
        TraceError: there is no such point.
    """
    kept = [point for point in sweep.points if all(_is(point_facts(point), k, v) for k, v in wanted.items())]
    if not kept:
        asked = ", ".join(f"{key}={value}" for key, value in wanted.items())
        known = dict.fromkeys(key for point in sweep.points for key in point_facts(point))
        raise TraceError(sweep.source, f"has no point with {asked} (known of its points: {', '.join(known)})")
    return replace(sweep, points=tuple(kept))


def _is(facts: Mapping[str, Value], key: str, value: str) -> bool:
    return key in facts and str(facts[key]).lower() == value.lower()


def _table(points: Iterable[SweepPoint]) -> tuple[dict[int, dict[TileConfig, float]], list[int]]:
    """Return m -> configuration -> median in ms, ascending, and the m at which nothing ran."""
    samples: dict[int, dict[TileConfig, list[float]]] = {}
    for point in points:
        if point.m is None:
            continue
        row = samples.setdefault(point.m, {})
        if point.samples_ms and point.reason is None:
            row.setdefault(point.known_config, []).extend(point.samples_ms)
    table = {m: {config: median(values) for config, values in row.items()} for m, row in sorted(samples.items()) if row}
    return table, [m for m in sorted(samples) if m not in table]


def _regrets(table: Mapping[int, Mapping[TileConfig, float]], configs: Sequence[TileConfig]) -> npt.NDArray[np.float64]:
    """Return ``[m, configuration]`` shares of time lost; infinite where a configuration has no timing."""
    import numpy as np

    times = np.array([[row.get(config, np.inf) for config in configs] for row in table.values()])
    regrets: npt.NDArray[np.float64] = times / times.min(axis=1, keepdims=True) - 1
    return regrets


class _From(NamedTuple):
    """The best way to cover the rows from one on; the smallest such tuple is the best.

    Attributes:
        ranges: how many it takes.
        regret: of all of them together.
        last: row of the first range.
        column: of the first range.
    """

    ranges: int
    regret: float
    last: int
    column: int


def _fewest_ranges(regrets: npt.NDArray[np.float64], max_regret: float) -> list[tuple[int, int, int]]:
    """Return first row, last row and column of every range, by dynamic programming from the last row to the first."""
    import numpy as np

    allowed = np.where(regrets <= max_regret + _EXACT, regrets, np.inf)
    count = len(allowed)
    plan = [_From(0, 0.0, -1, -1)] * (count + 1)
    for first in range(count - 1, -1, -1):
        totals = np.cumsum(allowed[first:], axis=0)
        columns = totals.argmin(axis=1)
        sums = totals[np.arange(len(totals)), columns]
        options = [
            _From(
                ranges=1 + plan[first + step + 1].ranges,
                regret=round(float(total) + plan[first + step + 1].regret, 12),
                last=first + step,
                column=int(column),
            )
            for step, (total, column) in enumerate(zip(sums, columns, strict=True))
            if np.isfinite(total)
        ]
        plan[first] = min(options)
    ranges, first = [], 0
    while first < count:
        ranges.append((first, plan[first].last, plan[first].column))
        first = plan[first].last + 1
    return ranges
