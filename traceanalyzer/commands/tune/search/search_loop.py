"""The loop of a search: propose, measure, and at the end measure the winners again where noise could mislead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from traceanalyzer.commands.tune.search.guided import Guided
from traceanalyzer.commands.tune.search.history import History
from traceanalyzer.commands.tune.search.level_space import Space, make_space
from traceanalyzer.commands.tune.tile_config import TileConfig

Measure = Callable[[int], Sequence[float]]

# Chosen, not fitted; `python -m bench.replay` shows what they give on recorded spaces.

CONFIRM_SHARE, MOST_CONFIRMATIONS, TOO_SMALL_TO_CONFIRM = 0.06, 12, 20
"""Share of the budget kept to measure leaders again, its limit, and the budget below which there is none."""
NEGLIGIBLE_NOISE = 0.002
"""Relative standard deviation of samples below which leaders need not be measured again."""
LEADERS = 6
"""So many of the fastest are candidates for measuring again."""
TOLERANCE, ASSUMED_NOISE = 3, 0.02
"""A leader may be the fastest within so many standard deviations; the noise taken where samples tell none."""


class Strategy(Protocol):
    """What chooses the next configurations."""

    def propose(self, history: History, count: int) -> list[int]:
        """Return up to ``count`` configurations that were not measured yet; none when there are no more."""
        ...


class Random:
    """Every configuration is as likely as any other; the yardstick for strategies."""

    def __init__(self, space: Space, budget: int, rng: np.random.Generator) -> None:
        self._rng = rng

    def propose(self, history: History, count: int) -> list[int]:
        """Return configurations drawn by chance."""
        unseen = history.unseen()
        return [int(i) for i in self._rng.choice(unseen, min(count, len(unseen)), replace=False)]


STRATEGIES: dict[str, Callable[[Space, int, np.random.Generator], Strategy]] = {"guided": Guided, "random": Random}
"""Name -> strategy; the first is the default."""


def search(
    configs: Sequence[TileConfig],
    measure: Measure,
    budget: int,
    seed: int = 0,
    strategy: str = "guided",
    known: Mapping[int, Sequence[float]] | None = None,
    space: Space | None = None,
) -> History:
    """Look for the fastest configuration; return everything measured.

    Args:
        configs: every configuration that may be tried, each once; constraints show in which are there.
        measure: evaluates one, by its place in ``configs``.
        budget: how many evaluations may be made; measuring the same configuration again is another one.
        seed: equal seeds and equal measurements give equal searches.
        strategy: a key of ``STRATEGIES``.
        known: evaluations of an earlier run, which cost nothing.
        space: ``make_space(configs)``, where the caller searches it more than once.
    """
    space = space or make_space(configs)
    rng = np.random.default_rng(seed)
    history = History(len(space))
    for index, samples in (known or {}).items():
        history.record(index, samples)
    before = history.evaluations
    budget = max(0, budget)
    reserved = _reserved(budget) if strategy != "random" else 0
    chooser = STRATEGIES[strategy](space, budget, rng)

    def spend(limit: int) -> None:
        while history.evaluations - before < limit:
            proposed = chooser.propose(history, limit - (history.evaluations - before))
            if not proposed:
                return
            for index in proposed:
                history.record(index, measure(index))

    spend(budget - reserved)
    while history.evaluations - before < budget:
        again = _to_confirm(history) if reserved else None
        if again is None:
            break
        history.record(again, measure(again))
    spend(budget)
    return history


def _reserved(budget: int) -> int:
    """Return how many evaluations are kept to measure the winners again."""
    return 0 if budget < TOO_SMALL_TO_CONFIRM else min(MOST_CONFIRMATIONS, round(CONFIRM_SHARE * budget))


def _to_confirm(history: History) -> int | None:
    """Return which of the leaders to measure again; ``None`` when noise cannot change who leads.

    A leader was picked because its time was the lowest, so it is likely to have been lucky. The one with fewest samples
    among those that noise cannot tell from the leader is measured next, until they have four times what one evaluation
    gives.
    """
    leaders = history.best(LEADERS)
    noise = history.noise()
    if len(leaders) < 2 or (noise is not None and noise < NEGLIGIBLE_NOISE):
        return None
    tolerance = 1 + TOLERANCE * (noise if noise is not None else ASSUMED_NOISE)
    close = [index for index in leaders if history.times[index] <= history.times[leaders[0]] * tolerance]
    if len(close) < 2:
        return None
    fewest = min(close, key=history.samples)
    enough = 4 * max(1, min(history.samples(index) for index in history.times))
    return fewest if history.samples(fewest) < enough else None
