"""Medians with bootstrap confidence intervals, and comparisons of candidates that were measured side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with the interval that holds it with the given confidence."""

    value: float
    low: float
    high: float


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

    Each round gives one ratio of medians, so drift between rounds cancels; the interval is bootstrapped over rounds.
    With one round the interval is the value itself: nothing is known of its spread.

    Args:
        rounds: samples of the candidate, one sequence a round.
        base: samples of the base in the same rounds; later rounds of the longer one are not used.
        confidence: as above.
    """
    ratios = [median(mine) / median(other) for mine, other in zip(rounds, base, strict=False)]
    return median_interval(ratios, confidence)
