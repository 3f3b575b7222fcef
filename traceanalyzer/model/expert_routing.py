"""How many experts a step hits, and how many rows they compute with padded tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from traceanalyzer.model.architecture import ModelError

EXACT_TOKENS = 2048
"""Tokens above which the rows of an expert are assumed to be uniform within a tile; chosen, not fitted."""


@dataclass(frozen=True)
class ExpertRouting:
    """How tokens spread over experts.

    Attributes:
        skew: exponent s of a Zipf law: the i-th most popular expert is i^-s as popular as the first; 0 is uniform.
        distinct: observed experts hit per layer of a step; overrides the expectation.
        counts: observed rows of each expert in one layer of the step; overrides both.
    """

    skew: float = 0.0
    distinct: float | None = None
    counts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.skew < math.inf:
            raise ModelError(f"routing skew must be 0 or more, not {self.skew}")
        if self.distinct is not None and not self.distinct > 0:
            raise ModelError(f"distinct experts must be above 0, not {self.distinct}")
        if self.counts is not None and (not self.counts or min(self.counts) < 0):
            raise ModelError("expert counts must be a list of rows, 0 or more each")


def inclusion(experts: int, top_k: int, skew: float = 0.0) -> tuple[float, ...]:
    """Return each expert's probability to be among a token's top k; they sum to k, and none exceeds 1."""
    certain = 0
    while True:
        # Relative to the most popular expert left: under a steep law all would be rounded to 0 otherwise.
        popularity = [float(((i + 1) / (certain + 1)) ** -skew) for i in range(certain, experts)]
        scale = (top_k - certain) / sum(popularity) if popularity else 0.0
        now_certain = sum(1 for weight in popularity if weight * scale > 1)
        if not now_certain:
            return tuple([1.0] * certain + [weight * scale for weight in popularity])
        certain += now_certain


@lru_cache(maxsize=256)
def expected_distinct(experts: int, top_k: int, tokens: float, skew: float = 0.0) -> float:
    """Return how many experts get at least one of ``tokens`` tokens: sum over experts of 1 - (1 - q)^T.

    Uniform routing (``skew`` 0) makes it E (1 - (1 - k/E)^T).
    """
    if skew == 0:
        return float(experts * (1 - (1 - top_k / experts) ** tokens))
    return float(sum(1 - (1 - share) ** tokens for share in inclusion(experts, top_k, skew)))


def padded_rows(counts: Sequence[float], block_m: int) -> float:
    """Return the rows that tiles of ``block_m`` compute for experts with so many rows: sum of ceil(rows/bm) bm."""
    return float(sum(math.ceil(rows / block_m) * block_m for rows in counts))


@lru_cache(maxsize=256)
def expected_padded_rows(experts: int, top_k: int, tokens: int, block_m: int, skew: float = 0.0) -> float:
    """Return the expectation of ``padded_rows`` if tokens choose experts independently of each other."""
    shares = inclusion(experts, top_k, skew)
    cache = {share: _expected_padded(share, tokens, block_m) for share in set(shares)}
    return sum(cache[share] for share in shares)


def _expected_padded(share: float, tokens: int, block_m: int) -> float:
    """E[ceil(X/bm) bm] of X ~ Binomial(tokens, share): bm times the sum over j of P(X > j bm)."""
    if share >= 1:
        return padded_rows([tokens], block_m)
    mean, deviation = tokens * share, math.sqrt(tokens * share * (1 - share))
    if tokens > EXACT_TOKENS and deviation > block_m:
        # Rows are then as good as uniform within a tile: half a tile is wasted.
        return mean + (block_m - 1) / 2
    above, total = 1.0, 0.0
    for rows in range(tokens):
        above -= _binomial(tokens, rows, share)
        if above <= 1e-12:
            break
        if rows % block_m == 0:
            total += above * block_m
    return total


def _binomial(n: int, k: int, p: float) -> float:
    if p <= 0:
        return 1.0 if k == 0 else 0.0
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + k * math.log(p) + (n - k) * math.log1p(-p))
