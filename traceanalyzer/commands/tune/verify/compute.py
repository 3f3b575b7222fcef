"""Did the change make the kernel faster? Before and after, measured in turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from traceanalyzer.commands.tune.measure.race import FEWEST_ROUNDS, CandidateResult, round_ratio
from traceanalyzer.commands.tune.measure.statistics import Interval
from traceanalyzer.commands.tune.run.compute import JobOutcome
from traceanalyzer.kernels.problem import Config

Verdict = Literal["faster", "slower", "same", "unclear", "failed"]

SAME = 0.01
"""A change smaller than this, as a share, counts as none even where it can be measured. Chosen, not fitted."""


@dataclass(frozen=True)
class TileComparison:
    """Before against after on one problem.

    Attributes:
        before: result of the configuration so far.
        after: result of the new one.
        ratio: time after over time before, with its interval; None when one of them has no samples.
        verdict: ``faster``, ``slower``, ``same`` (within 1 %), ``unclear`` (the interval holds 1, or too few rounds),
            or ``failed``.
    """

    before: CandidateResult
    after: CandidateResult
    ratio: Interval | None
    verdict: Verdict


def compare(outcome: JobOutcome, before: Config, after: Config) -> TileComparison:
    """Compare two configurations that one job measured side by side."""
    by_config = {result.config: result for result in outcome.results}
    old, new = by_config[before], by_config[after]
    base, changed = outcome.samples.get(before, {}), outcome.samples.get(after, {})
    ratio = round_ratio(changed, base)
    if "failed" in (old.verdict, new.verdict):
        return TileComparison(old, new, ratio, "failed")
    return TileComparison(old, new, ratio, _verdict(ratio, len(set(base) & set(changed))))


def _verdict(ratio: Interval | None, rounds: int) -> Verdict:
    if ratio is None or rounds < FEWEST_ROUNDS:
        return "unclear"
    if ratio.low > 1 - SAME and ratio.high < 1 + SAME:
        return "same"
    if ratio.high < 1:
        return "faster"
    return "slower" if ratio.low > 1 else "unclear"
