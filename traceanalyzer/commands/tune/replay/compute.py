"""Try a search strategy on a recorded sweep instead of a GPU: how near does it come, with how few measurements?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.replay.result import StrategyName, TuneReplayDocument
from traceanalyzer.problems import TraceError

if TYPE_CHECKING:
    import numpy as np

SAMPLES = 3
"""Samples an evaluation draws from the recorded ones, without putting back; all of them where there are
fewer. Chosen, not fitted."""

RANDOM_SEARCHES = 100
"""Random searches at minimum, each with its own seed: they are cheap, and their median is the yardstick. Chosen."""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * len(ordered) * 1e9) // 10**9) - 1)]


def replay(
    sweep: Sweep,
    budget_share: float = 0.03,
    seeds: int = 20,
    strategy: StrategyName = "guided",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TuneReplayDocument:
    """Search every problem of a sweep, with the recorded samples for measurements.

    Points that differ in kernel, shape, m, device or versions are searched apart. A budget is a share of each space,
    rounded down, but at least one evaluation. Progress is told searches done and searches in all.

    Raises:
        TraceError: no configuration of the sweep has a timing.
    """
    from traceanalyzer.commands.tune.search.level_space import make_space

    tables = [table for table in _tables(sweep) if any(point.samples_ms for point in table)]
    if not tables:
        raise TraceError(sweep.source, "holds no timing, so there is nothing to search")
    regrets, random_regrets, evaluations = [], [], [0] * seeds
    draws = max(seeds, RANDOM_SEARCHES)
    for number, table in enumerate(tables):
        budget = max(1, int(budget_share * len(table) + 1e-9))
        recording = _Recording(table)
        space = make_space([point.known_config for point in table])
        for seed in range(seeds):
            used, regret = recording.search(space, budget, seed, strategy)
            evaluations[seed] += used
            regrets.append(regret)
            progress(number * seeds + seed + 1, len(tables) * seeds)
        random_regrets += [recording.by_chance(budget, seed) for seed in range(draws)]
    return TuneReplayDocument(
        strategy=strategy,
        space=sum(map(len, tables)),
        problems=len(tables),
        failed_configurations=sum(not point.samples_ms for table in tables for point in table),
        evaluations=max(evaluations),
        samples_per_evaluation=SAMPLES,
        seeds=seeds,
        median_regret=_finite(median(regrets)),
        p90_regret=_finite(quantile(regrets, 0.9)),
        random_median_regret=_finite(median(random_regrets)),
        regrets=[_finite(regret) for regret in regrets],
    )


def _finite(regret: float) -> float | None:
    """A regret; ``None`` for the infinite one of a search in which nothing tried ran."""
    return regret if isfinite(regret) else None


def _tables(sweep: Sweep) -> list[list[SweepPoint]]:
    """Return the points that are alternatives to each other; what was never tried is none."""
    by_problem: dict[tuple[object, ...], list[SweepPoint]] = {}
    for point in sweep.points:
        if point.samples_ms or point.reason:
            by_problem.setdefault((*point.problem, point.m, point.concurrency), []).append(point)
    return list(by_problem.values())


class _Recording:
    """Recorded samples of one space, in place of a GPU."""

    def __init__(self, table: Sequence[SweepPoint]) -> None:
        import numpy as np

        self._configs = [point.known_config for point in table]
        # A point that failed in any round has no place in a rule, whatever its other rounds say.
        self._samples = [np.array(point.samples_ms if point.reason is None else ()) for point in table]
        self._medians = [median(values.tolist()) if len(values) else float("inf") for values in self._samples]
        self._best = min(self._medians)
        self._counts = np.array([len(values) for values in self._samples])
        self._starts = np.cumsum(self._counts) - self._counts
        self._all = np.concatenate(self._samples)

    def search(self, space: object, budget: int, seed: int, strategy: str) -> tuple[int, float]:
        """Return evaluations made and regret of one search."""
        import numpy as np

        from traceanalyzer.commands.tune.search import search

        noise = np.random.default_rng([seed, budget])
        history = search(
            self._configs,
            lambda index: self._draw(index, noise),
            budget,
            seed=seed,
            strategy=strategy,
            space=space,  # type: ignore[arg-type]
        )
        chosen = min((self._medians[best] for best in history.best(1)), default=float("inf"))
        return history.evaluations, chosen / self._best - 1

    def by_chance(self, budget: int, seed: int) -> float:
        """Return the regret of one random search: the strategy ``random``, with all evaluations at once."""
        import numpy as np

        rng = np.random.default_rng([seed, budget, 1])
        tried = rng.choice(len(self._samples), min(budget, len(self._samples)), replace=False)
        ran = tried[self._counts[tried] > 0]
        if not len(ran):
            return float("inf")
        places = rng.integers(0, self._counts[ran][:, None], (len(ran), SAMPLES))
        drawn = np.median(self._all[self._starts[ran][:, None] + places], axis=1)
        return self._medians[int(ran[drawn.argmin()])] / self._best - 1

    def _draw(self, index: int, noise: np.random.Generator) -> list[float]:
        recorded = self._samples[index]
        if len(recorded) <= SAMPLES:
            return [float(value) for value in recorded]
        return [float(recorded[place]) for place in noise.choice(len(recorded), SAMPLES, replace=False)]
