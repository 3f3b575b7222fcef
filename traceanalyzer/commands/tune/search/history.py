"""What a search has measured so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from traceanalyzer.commands.tune.search.level_space import Floats, Indices


class History:
    """The evaluations of one search of a space of so many configurations, in order."""

    def __init__(self, size: int) -> None:
        self._samples: dict[int, list[float]] = {}
        self._seen = np.zeros(size, dtype=bool)
        self._spreads: list[float] = []
        self.evaluations = 0
        self.times: dict[int, float] = {}
        """Configuration -> median of every sample taken, in milliseconds; failed ones are not in it."""

    def record(self, index: int, samples: Sequence[float]) -> None:
        """Add an evaluation; no samples means that the configuration failed."""
        self.evaluations += 1
        self._seen[index] = True
        taken = self._samples.setdefault(index, [])
        taken.extend(samples)
        if len(samples) > 1:
            self._spreads.append(_spread([math.log(value) for value in samples]))
        if taken:
            self.times[index] = median(taken)

    def measured(self) -> Sequence[int]:
        """Return what was measured, failed ones too, in the order of the first evaluation."""
        return list(self._samples)

    def unseen(self) -> Indices:
        """Return what was not measured, ascending."""
        return np.flatnonzero(~self._seen)

    def best(self, count: int) -> list[int]:
        """Return the fastest configurations, fastest first; the earlier one where two are equal."""
        return sorted(self.times, key=self.times.__getitem__)[:count]

    def samples(self, index: int) -> int:
        """Return how many samples were taken of a configuration."""
        return len(self._samples.get(index, ()))

    def noise(self) -> float | None:
        """Return the typical relative standard deviation of an evaluation's samples; ``None`` where each has one."""
        return median(self._spreads) if self._spreads else None

    def training(self) -> tuple[Indices, Floats]:
        """Return what was measured and the logarithm of its time; a failed one counts as the slowest that ran."""
        seen = np.array(list(self._samples), dtype=np.int64)
        slowest = max(self.times.values(), default=1.0)
        return seen, np.log(np.array([self.times.get(int(index), slowest) for index in seen]))


def _spread(values: Sequence[float]) -> float:
    """Return the population standard deviation; the exact arithmetic of ``statistics`` would dominate a replay."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
