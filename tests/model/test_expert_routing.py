"""Distinct experts and tile padding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model import ExpertRouting, ModelError, expected_distinct
from traceanalyzer.model.expert_routing import expected_padded_rows, inclusion, padded_rows

PUBLISHED = {
    (32, 1): 4.0, (32, 2): 7.5, (32, 4): 13.24, (32, 8): 21.0, (32, 16): 28.2, (32, 32): 31.55,
    (128, 16): 51.0, (128, 32): 81.7, (128, 64): 111.2,
}  # fmt: skip


@pytest.mark.parametrize(("case", "distinct"), PUBLISHED.items())
def test_distinct_experts_equal_the_published_expectation(case: tuple[int, int], distinct: float) -> None:
    experts, tokens = case
    assert expected_distinct(experts, 4, tokens) == pytest.approx(distinct, rel=2e-3)


@given(st.integers(1, 64), st.integers(1, 8), st.floats(0, 3))
def test_inclusion_probabilities_sum_to_top_k_and_stay_below_one(extra: int, top_k: int, skew: float) -> None:
    shares = inclusion(top_k + extra - 1, top_k, skew)
    assert sum(shares) == pytest.approx(top_k)
    assert all(0 <= share <= 1 + 1e-12 for share in shares)


@given(st.integers(1, 300), st.floats(0.1, 2))
def test_skewed_routing_hits_fewer_experts_than_uniform(tokens: int, skew: float) -> None:
    assert expected_distinct(128, 4, tokens, skew) <= expected_distinct(128, 4, tokens) + 1e-9


@pytest.mark.parametrize("skew", [5000.0, 1e308])
def test_routing_so_skewed_that_shares_vanish_always_takes_the_same_experts(skew: float) -> None:
    assert inclusion(8, 3, skew) == (1, 1, 1, 0, 0, 0, 0, 0)
    assert expected_distinct(32, 4, 16, skew) == 4


def test_padded_rows_of_observed_counts() -> None:
    assert padded_rows([0, 1, 16, 17], 16) == 0 + 16 + 16 + 32


@pytest.mark.parametrize(("tokens", "block_m"), [(1, 16), (8, 16), (32, 16), (100, 16), (100, 64), (500, 128)])
def test_expected_padding_equals_the_mean_of_draws(tokens: int, block_m: int) -> None:
    draw = random.Random(7)
    samples = []
    for _ in range(300):
        counts = [0] * 16
        for _ in range(tokens):
            for expert in draw.sample(range(16), 2):
                counts[expert] += 1
        samples.append(padded_rows(counts, block_m))
    expected = expected_padded_rows(16, 2, tokens, block_m)
    assert expected == pytest.approx(sum(samples) / len(samples), rel=0.03)
    assert expected >= tokens * 2


def test_padding_of_many_tokens_joins_the_exact_sum() -> None:
    exact, approximate = (expected_padded_rows(32, 4, tokens, 16) for tokens in (2048, 2049))
    assert approximate / exact == pytest.approx(2049 / 2048, rel=2e-3)


@pytest.mark.parametrize(
    "options", [{"skew": -1}, {"skew": float("nan")}, {"distinct": 0}, {"counts": ()}, {"counts": (-1,)}]
)
def test_absurd_routing_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        ExpertRouting(**options)  # type: ignore[arg-type]
