"""Statistics of repeated runs: medians with their spread, ratios pair by pair, growth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Return median, smallest, largest and number of some values (at least one)."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "runs": len(values),
    }


def ratios(peer: Sequence[float], ours: Sequence[float]) -> dict[str, float | int]:
    """Return the spread of how many times as long a peer took, run by run: the runs of one repetition are a pair.

    Raises:
        ValueError: there are no pairs.
    """
    pairs = [theirs / mine for theirs, mine in zip(peer, ours, strict=False)]
    if not pairs:
        raise ValueError("no pairs of runs")
    return spread(pairs)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float | None:
    """Return b of time = a * size**b, by least squares on logarithms; null with less than two different sizes.

    1 is linear growth. Fixed costs at small sizes pull it below 1.
    """
    if len(set(sizes)) < 2:
        return None
    x = [math.log(size) for size in sizes]
    y = [math.log(time) for time in times]
    return statistics.linear_regression(x, y).slope


def rounded(value: Any, digits: int = 4) -> Any:
    """Round every float in some plain data to significant digits, for files that people read."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
