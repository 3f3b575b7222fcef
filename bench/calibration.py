"""Rates with intervals, and how far claims of confidence hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

Z95 = 1.959963984540054
Claim = tuple[float, bool]
"""A reported confidence, and whether the answer was right."""


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (Wilson 1927, score interval); 0 to 1 where nothing was tried."""
    if not total:
        return 0.0, 1.0
    share, square = right / total, Z95**2 / total
    centre = (share + square / 2) / (1 + square)
    half = Z95 * sqrt(share * (1 - share) / total + square / (4 * total)) / (1 + square)
    return max(0.0, centre - half), min(1.0, centre + half)


def auc(claims: Sequence[Claim]) -> float | None:
    """Return the chance that a right answer has the higher confidence than a wrong one; ties count half.

    The Mann-Whitney statistic, from ranks. Null where all answers are right, or all wrong.
    """
    right = sum(each for _, each in claims)
    wrong = len(claims) - right
    if not right or not wrong:
        return None
    ordered = sorted(claims)
    ranks, place = 0.0, 0
    while place < len(ordered):
        end = place
        while end < len(ordered) and ordered[end][0] == ordered[place][0]:
            end += 1
        ranks += (place + end + 1) / 2 * sum(each for _, each in ordered[place:end])
        place = end
    return (ranks - right * (right + 1) / 2) / (right * wrong)


def brier(claims: Sequence[Claim]) -> float:
    """Return the mean squared distance of the confidence from what happened (1 right, 0 wrong)."""
    return sum((confidence - right) ** 2 for confidence, right in claims) / len(claims)


def bins(claims: Sequence[Claim], edges: Sequence[float]) -> list[list[Claim]]:
    """Sort claims into the bins between ascending edges; the last bin holds its upper edge too."""
    found: list[list[Claim]] = [[] for _ in edges[1:]]
    for claim in claims:
        place = sum(claim[0] >= edge for edge in edges[1:-1])
        found[place].append(claim)
    return found


def calibration_error(claims: Sequence[Claim], edges: Sequence[float]) -> float:
    """Return the expected calibration error: the distance of mean confidence and right rate, averaged over bins."""
    total = 0.0
    for members in bins(claims, edges):
        total += abs(sum(confidence - right for confidence, right in members))
    return total / len(claims)
