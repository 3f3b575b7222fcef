"""Did the change make the kernel faster? Before and after, measured in turns."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.kernels.problem import Config
from traceanalyzer.tune.race import FEWEST_ROUNDS, Result
from traceanalyzer.tune.run import Outcome
from traceanalyzer.tune.statistics import Interval, ratio_interval
from traceanalyzer.tune.sweep import Point

SAME = 0.01
"""A change smaller than this, as a share, is called none even where it can be measured."""


@dataclass(frozen=True)
class Comparison:
    """Before against after on one problem.

    Attributes:
        before: result of the configuration so far.
        after: result of the new one.
        ratio: time after over time before, with its interval; null when one of them failed.
        verdict: ``faster``, ``slower``, ``same`` (within 1 %), ``unclear`` (the interval holds 1), or ``failed``.
    """

    before: Result
    after: Result
    ratio: Interval | None
    verdict: str


def compare(outcome: Outcome, before: Config, after: Config, points: dict[Config, Point]) -> Comparison:
    """Compare two configurations that one job measured.

    Args:
        outcome: of that job.
        before: configuration so far.
        after: the new one.
        points: both with their samples, round by round.
    """
    by_config = {result.config: result for result in outcome.results}
    old, new = by_config[before], by_config[after]
    rounds = min(old.rounds, new.rounds)
    if not rounds or "failed" in (old.verdict, new.verdict):
        return Comparison(old, new, None, "failed")
    ratio = ratio_interval(points[after].rounds[:rounds], points[before].rounds[:rounds])
    return Comparison(old, new, ratio, _verdict(ratio, rounds))


def _verdict(ratio: Interval, rounds: int) -> str:
    if rounds < FEWEST_ROUNDS:
        return "unclear"
    if 1 - SAME < ratio.low and ratio.high < 1 + SAME:
        return "same"
    if ratio.high < 1:
        return "faster"
    return "slower" if ratio.low > 1 else "unclear"
