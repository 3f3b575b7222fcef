"""Who is best, who ties, who is out: decisions from samples that were taken side by side, round by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from traceanalyzer.commands.tune.measure.statistics import CONFIDENCE, Interval, median_interval, ratio_interval
from traceanalyzer.kernels.problem import Config

Rounds = Mapping[int, Sequence[float]]
"""Round number -> samples in milliseconds."""

FEWEST_ROUNDS = 3
"""With fewer common rounds nothing is said about who is faster; chosen, not fitted."""

DROP_CONFIDENCE = 0.99
"""Confidence with which a candidate must be slower to be dropped; chosen, not fitted."""

HOPELESS = 2.0
"""A candidate that takes this many times as long as the best is dropped after its first round; chosen, not fitted."""


@dataclass(frozen=True)
class CandidateResult:
    """What is known of one candidate.

    Attributes:
        config: the candidate.
        verdict: one of ``MeasuredTile``.
        rounds: rounds measured.
        median: of all samples, ms, with its interval; ``None`` when unmeasured.
        ratio: time over the best one's, from common rounds; ``None`` where there are none.
        reason: why it failed; ``None`` otherwise.
    """

    config: Config
    verdict: str
    rounds: int
    median: Interval | None = None
    ratio: Interval | None = None
    reason: str | None = None


def leader(measured: Mapping[Config, Rounds]) -> Config | None:
    """Return the candidate with the smallest median of round medians among those measured most often."""
    most = max((len(rounds) for rounds in measured.values()), default=0)
    if not most:
        return None
    # One round less is as good: when time runs out in the middle of a round, only some have the last one.
    full = {config: rounds for config, rounds in measured.items() if len(rounds) >= max(1, most - 1)}
    return min(full, key=lambda config: (median(map(median, full[config].values())), config.label))


def clearly_worse(measured: Mapping[Config, Rounds], alive: Iterable[Config], margin: float) -> set[Config]:
    """Return who need not be measured further.

    Args:
        measured: samples so far.
        alive: who is still in the race.
        margin: how much slower than the best a candidate must be at least, as a share, to be dropped.
    """
    running = {config: measured[config] for config in alive if measured.get(config)}
    best = leader(running)
    if best is None:
        return set()
    out = set()
    for config, rounds in running.items():
        ratio = round_ratio(rounds, running[best], DROP_CONFIDENCE)
        if config == best or ratio is None:
            continue
        common = len(set(rounds) & set(running[best]))
        if ratio.value > HOPELESS or (common >= FEWEST_ROUNDS and ratio.low > 1 + margin):
            out.add(config)
    return out


def results(
    configs: Sequence[Config],
    measured: Mapping[Config, Rounds],
    failures: Mapping[Config, str],
    dropped: set[Config],
) -> tuple[CandidateResult, ...]:
    """Return every candidate's result, the best first, then by median; what has none comes last."""
    standing = {config: measured[config] for config in configs if measured.get(config) and config not in failures}
    best = leader({config: rounds for config, rounds in standing.items() if config not in dropped} or standing)
    decided = []
    for config in configs:
        if config in failures:
            decided.append(CandidateResult(config, "failed", len(measured.get(config, {})), reason=failures[config]))
        elif config not in standing or best is None:
            decided.append(CandidateResult(config, "unmeasured", 0))
        else:
            decided.append(_result(config, standing[config], standing[best], config == best, config in dropped))
    return tuple(sorted(decided, key=_place))


def _result(config: Config, rounds: Rounds, best: Rounds, is_best: bool, is_dropped: bool) -> CandidateResult:
    middle = median_interval([sample for samples in rounds.values() for sample in samples])
    ratio = round_ratio(rounds, best)
    common = len(set(rounds) & set(best))
    if is_best:
        verdict = "best"
    elif is_dropped:
        verdict = "dropped"
    elif common < FEWEST_ROUNDS or ratio is None:
        verdict = "unclear"
    else:
        verdict = "slower" if ratio.low > 1 else "tie"
    return CandidateResult(config, verdict, len(rounds), middle, ratio)


def round_ratio(rounds: Rounds, base: Rounds, confidence: float = CONFIDENCE) -> Interval | None:
    """Return how much longer a candidate takes than a base, from the rounds both have, if there are any."""
    common = sorted(set(rounds) & set(base))
    if not common:
        return None
    mine, other = [rounds[number] for number in common], [base[number] for number in common]
    return ratio_interval(mine, other, confidence)


def _place(result: CandidateResult) -> tuple[int, float]:
    order = {"best": 0, "failed": 3, "unmeasured": 2}
    return order.get(result.verdict, 1), result.median.value if result.median else float("inf")
