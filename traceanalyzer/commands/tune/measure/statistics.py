"""Medians with bootstrap confidence intervals, and comparisons of candidates that were measured side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

RESAMPLES = 1000
"""Draws of a bootstrap; chosen, not fitted."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with the interval that holds it with the given confidence."""

    value: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.low, self.high


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE, seed: int = 0) -> Interval:
    """Return the median and its percentile bootstrap interval.

    Args:
        samples: at least one.
        confidence: share of the bootstrap medians inside the interval.
        seed: of the resampling, so that the same samples give the same interval.
    """
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    medians = np.median(values[draws], axis=1)
    low, high = np.quantile(medians, ((1 - confidence) / 2, (1 + confidence) / 2))
    return Interval(median(samples), float(low), float(high))


def ratio_interval(
    rounds: Sequence[Sequence[float]], base: Sequence[Sequence[float]], confidence: float = CONFIDENCE
) -> Interval:
    """Return how much longer a candidate takes than a base, from rounds in which both were measured.

    Each round gives one ratio of medians, so drift between rounds cancels. The bootstrap draws rounds, and within each
    drawn round samples: few rounds, or noisy ones, give a wide interval.

    Args:
        rounds: samples of the candidate, one sequence per round.
        base: samples of the base in the same rounds.
        confidence: share of the bootstrap ratios inside the interval.
    """
    import numpy as np

    generator = np.random.default_rng(0)
    ratios = [median(mine) / median(other) for mine, other in zip(rounds, base, strict=True)]

    def medians(samples: Sequence[float]) -> Any:
        values = np.asarray(samples, dtype=np.float64)
        return np.median(values[generator.integers(0, len(values), (RESAMPLES, len(values)))], axis=1)

    drawn = np.stack([medians(mine) / medians(other) for mine, other in zip(rounds, base, strict=True)], axis=1)
    chosen = generator.integers(0, len(ratios), drawn.shape)
    middles = np.median(np.take_along_axis(drawn, chosen, axis=1), axis=1)
    low, high = np.quantile(middles, ((1 - confidence) / 2, (1 + confidence) / 2))
    value = median(ratios)
    return Interval(value, min(value, float(low)), max(value, float(high)))
