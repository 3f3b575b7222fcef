"""Who is best, who ties, who is out: decided from samples that were taken side by side, round by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from traceanalyzer.commands.tune.measure.result import MeasuredTile, TileVerdict
from traceanalyzer.kernels.problem import Config

Rounds = Mapping[int, Sequence[float]]
"""Round number -> samples in milliseconds."""

FEWEST_ROUNDS = 3
"""With fewer common rounds nothing is said about who is faster; chosen, not fitted."""

DROP_CONFIDENCE = 0.99
"""Confidence with which a candidate must be slower to be dropped; chosen, not fitted."""

HOPELESS = 2.0
"""A candidate that takes this many times as long as the best is dropped after its first round; chosen, not fitted."""


RESAMPLES = 1000
"""Draws of a bootstrap; chosen, not fitted."""

CONFIDENCE = 0.95
"""Of every interval that is shown: the usual one."""


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.low, self.high


def leader(measured: Mapping[Config, Rounds]) -> Config | None:
    """Return the candidate with the smallest median of round medians among those measured most often."""
    most = max((len(rounds) for rounds in measured.values()), default=0)
    if not most:
        return None
    # One round less is as good: when time runs out in the middle of a round, only some have the last one.
    full = {config: rounds for config, rounds in measured.items() if len(rounds) >= max(1, most - 1)}
    return min(full, key=lambda config: (median(map(median, full[config].values())), config.label))


def clearly_worse(measured: Mapping[Config, Rounds], alive: Iterable[Config], margin: float) -> set[Config]:
    """Return who of those still ``alive`` is slower than the best by more than a share of ``margin``."""
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
) -> tuple[MeasuredTile, ...]:
    """Return every candidate's result, the best first, then by median; what has none comes last."""
    standing = {config: measured[config] for config in configs if measured.get(config) and config not in failures}
    best = leader({config: rounds for config, rounds in standing.items() if config not in dropped} or standing)
    decided = []
    for config in configs:
        facts: dict[str, Any] = {"config": config.to_dict(), "rounds": len(measured.get(config, {}))}
        if config in failures:
            decided.append(MeasuredTile(verdict="failed", reason=failures[config], **facts))
        elif config not in standing or best is None:
            decided.append(MeasuredTile(verdict="unmeasured", **facts))
        else:
            verdict, times = _against(standing[config], standing[best])
            if config == best or config in dropped:
                verdict = "best" if config == best else "dropped"
            decided.append(MeasuredTile(verdict=verdict, **facts, **times))
    return tuple(sorted(decided, key=_place))


def _against(rounds: Rounds, best: Rounds) -> tuple[TileVerdict, dict[str, Any]]:
    """Return how a candidate compares with the best, and its times."""
    middle = median_interval([sample for samples in rounds.values() for sample in samples])
    ratio = round_ratio(rounds, best)
    times = {
        "median_ms": middle.value,
        "interval_ms": middle.ends,
        "ratio_to_best": ratio.value if ratio else None,
        "ratio_interval": ratio.ends if ratio else None,
    }
    if ratio is None or len(set(rounds) & set(best)) < FEWEST_ROUNDS:
        return "unclear", times
    return "slower" if ratio.low > 1 else "tie", times


def round_ratio(rounds: Rounds, base: Rounds, confidence: float = CONFIDENCE) -> Interval | None:
    """Return how much longer a candidate takes than a base, from the rounds both have, if there are any."""
    common = sorted(set(rounds) & set(base))
    if not common:
        return None
    mine, other = [rounds[number] for number in common], [base[number] for number in common]
    return ratio_interval(mine, other, confidence)


def _place(result: MeasuredTile) -> tuple[int, float]:
    order = {"best": 0, "failed": 3, "unmeasured": 2}
    return order.get(result.verdict, 1), float("inf") if result.median_ms is None else result.median_ms


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE, seed: int = 0) -> Interval:
    """Return the median of at least one sample and its percentile bootstrap interval, the same for the same seed."""
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
