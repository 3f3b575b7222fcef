"""The default strategy: neighbours of the best configurations and a forest's favourites, in turn.

Neither is trusted alone. A model finds good regions that no neighbour leads to; neighbours find the last percent, where
a model has too few points to be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from traceanalyzer.commands.tune.search.forest import fit_forest
from traceanalyzer.commands.tune.search.history import History
from traceanalyzer.commands.tune.search.level_space import Codes, Floats, Indices, Space

# All of these are chosen, not fitted; `python -m bench.replay` shows what they give on recorded spaces.

FIRST_SHARE, FEWEST_FIRST = 0.2, 4
"""Share of the budget, and number at minimum, that is spread over the space before anything is learned."""
ROUNDS = 14
"""How often the rest of the budget lets the forest learn anew."""
MODEL_SHARE, RANDOM_SHARE = 0.5, 0.08
"""Share of proposals by the forest (else by neighbourhood), and share by chance before either is asked."""
OPTIMISM = 0.7
"""Standard deviations of the trees' answers by which a configuration may be better than their mean."""
INCUMBENTS, NEIGHBOURS = 6, 200
"""Of how many of the best configurations neighbours are looked at, and how many of each."""
ELSEWHERE = 3000
"""Other configurations that the forest scores."""
MOST_TRAINING, MOST_LEVELS = 1500, 32
"""Limits that keep the forest fast: points learned from, half of them the fastest, and steps of one parameter."""
REMEMBERED, DRAWN = 64, 8
"""For spreading: earlier configurations to keep away from, and candidates drawn for each pick."""


class Guided:
    """Proposes what to measure next; a share of the budget of evaluations is spread over the space first."""

    def __init__(self, space: Space, budget: int, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._first = min(budget, max(FEWEST_FIRST, round(FIRST_SHARE * budget)))
        self._batch = max(1, (budget - self._first) // ROUNDS)

    def propose(self, history: History, count: int) -> list[int]:
        """Return up to ``count`` configurations that were not measured yet, the most promising first."""
        unseen = history.unseen()
        if not len(unseen):
            return []
        missing = self._first - len(history.measured())
        if missing > 0 or not history.times:
            return _spread(self._space, history, unseen, min(count, max(missing, 1)), self._rng)
        count = min(count, self._batch, len(unseen))
        near = self._near(history, unseen)
        pool = np.unique(np.concatenate([*near, self._elsewhere(unseen)]))
        score = self._score(history, pool)
        favourites = iter(pool[np.argsort(score, kind="stable")])
        neighbours = iter(_by_score(near, pool, score))
        return self._mix(favourites, neighbours, unseen, count)

    def _mix(self, favourites: Iterator[Any], neighbours: Iterator[int], unseen: Indices, count: int) -> list[int]:
        """Draw from the forest's favourites and the neighbours in turn, by chance; some picks are chance alone."""
        chosen: dict[int, None] = {}
        while len(chosen) < count:
            luck = self._rng.random()
            if luck < RANDOM_SHARE:
                pick = int(self._rng.choice(unseen))
            else:
                source: Iterator[Any] = favourites if self._rng.random() < MODEL_SHARE else neighbours
                pick = int(next(source, self._rng.choice(unseen)))
            chosen[pick] = None
        return list(chosen)

    def _near(self, history: History, unseen: Indices) -> list[Indices]:
        """Return, for each of the best configurations, the unseen ones that differ least from it."""
        nearby = []
        for index in history.best(INCUMBENTS):
            distance = self._space.distance(index, unseen)
            within = np.flatnonzero(distance < max(2.0, distance.min() + 1))
            nearby.append(unseen[within[np.argsort(distance[within], kind="stable")[:NEIGHBOURS]]])
        return nearby

    def _elsewhere(self, unseen: Indices) -> Indices:
        if len(unseen) <= ELSEWHERE:
            return unseen
        return self._rng.choice(unseen, ELSEWHERE, replace=False)

    def _score(self, history: History, pool: Indices) -> Floats:
        """Return how promising configurations are; lower is better."""
        if not self._space.names:
            return np.zeros(len(pool))
        seen, target = history.training()
        if len(seen) > MOST_TRAINING:
            order = np.argsort(target, kind="stable")
            rest = self._rng.choice(order[MOST_TRAINING // 2 :], MOST_TRAINING // 2, replace=False)
            kept = np.concatenate([order[: MOST_TRAINING // 2], rest])
            seen, target = seen[kept], target[kept]
        train, ask = _features(self._space, seen, target, pool)
        mean, spread = fit_forest(train, target, self._rng).predict(ask)
        return np.asarray(mean - OPTIMISM * spread)


def _by_score(groups: list[Indices], pool: Indices, score: Floats) -> list[int]:
    """Return the groups' members in turn, each group's most promising first."""
    place = [group[np.argsort(score[np.searchsorted(pool, group)], kind="stable")] for group in groups]
    longest = max((len(group) for group in place), default=0)
    return [int(group[i]) for i in range(longest) for group in place if i < len(group)]


def _spread(space: Space, history: History, unseen: Indices, count: int, rng: np.random.Generator) -> list[int]:
    """Return configurations that differ in many parameters from each other and from what was measured."""
    others = list(history.measured())[-REMEMBERED:]
    chosen: dict[int, None] = {}
    for _ in range(count):
        some = rng.choice(unseen, DRAWN, replace=True)
        if others:
            known = space.codes[others[-REMEMBERED:]]
            nearest = (space.codes[some][:, None, :] != known).sum(axis=2).min(axis=1)
            some = some[np.argsort(-nearest, kind="stable")]
        new = next((int(index) for index in some if int(index) not in chosen), None)
        if new is not None:
            chosen[new] = None
            others.append(new)
    return list(chosen)


def _features(space: Space, seen: Indices, target: Floats, pool: Indices) -> tuple[Codes, Codes]:
    """Return level numbers fit for trees: text values ordered by their mean time, long scales in fewer steps."""
    tables = []
    for column, levels in enumerate(space.levels):
        codes = space.codes[:, column]
        table = np.arange(levels)
        if not space.ordinal[column]:
            counts = np.bincount(codes[seen], minlength=levels)
            means = np.bincount(codes[seen], target, levels) / np.maximum(counts, 1)
            table = np.argsort(np.argsort(np.where(counts > 0, means, target.mean()), kind="stable"), kind="stable")
        if levels > MOST_LEVELS:
            table = table * MOST_LEVELS // levels
        tables.append(table)

    def of(rows: Indices) -> Codes:
        return np.stack([table[space.codes[rows, c]] for c, table in enumerate(tables)], axis=1).astype(np.int32)

    return of(seen), of(pool)
