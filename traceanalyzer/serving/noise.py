"""Confidence intervals of means of repeated runs: Student's t, without a statistics library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LEVEL = 0.95
"""Of the confidence intervals; chosen, not fitted."""


@dataclass(frozen=True)
class RunMean:
    """A figure of one side, averaged over its runs.

    Attributes:
        mean: over the runs.
        runs: number of runs.
        half_width: of the confidence interval of the mean; None for a single run.
        deviation: sample standard deviation; None for a single run.
        resolution: half a unit of the last digit of figures from rounded text.
    """

    mean: float
    runs: int
    half_width: float | None
    deviation: float | None
    resolution: float


def estimate(values: Sequence[float], resolution: float = 0.0) -> RunMean:
    """Average repeated runs; the interval is mean +- t(n - 1) s / sqrt(n)."""
    if len(values) == 1:
        return RunMean(values[0], 1, None, None, resolution)
    deviation = stdev(values)
    half = t_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    return RunMean(fmean(values), len(values), half, deviation, resolution)


def difference_half_width(before: RunMean, after: RunMean) -> float | None:
    """Return half the confidence interval of ``after - before``; None if neither side was repeated.

    Both repeated: Welch's t-test, degrees of freedom rounded down. One repeated: the single run is assumed to vary like
    the repeated ones (Student's t with their degrees of freedom).
    """
    if before.deviation is None and after.deviation is None:
        return None
    if before.deviation is None or after.deviation is None:
        repeated = after if before.deviation is None else before
        spread = repeated.deviation or 0.0
        return t_quantile(repeated.runs - 1) * spread * math.sqrt(1 / before.runs + 1 / after.runs)
    shares = [side.deviation**2 / side.runs for side in (before, after) if side.deviation is not None]
    variance = sum(shares)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(s**2 / (n - 1) for s, n in zip(shares, (before.runs, after.runs), strict=True))
    return t_quantile(max(1, math.floor(freedom))) * math.sqrt(variance)


def t_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the t with ``P(|T| <= t) = level`` for whole degrees of freedom, by bisection."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def t_probability(t: float, freedom: int) -> float:
    """Return ``P(|T| <= t)`` by the finite series in cos(theta), theta = atan(t / sqrt(freedom)).

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(theta), math.sin(theta)
    odd = freedom % 2 == 1
    if freedom == 1:
        return 2 * theta / math.pi
    term = cosine if odd else 1.0
    total = term
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + sine * total) if odd else sine * total
