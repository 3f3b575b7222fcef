"""Statistics and decisions of a race, on samples with known answers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.commands.tune.measure.race import (
    clearly_worse,
    leader,
    median_interval,
    ratio_interval,
    results,
)
from traceanalyzer.kernels.problem import Config

A, B, C = Config(16, 16, 32), Config(16, 32, 32), Config(16, 64, 32)


def noisy(base: float, rounds: int, seed: int, spread: float = 0.01) -> dict[int, tuple[float, ...]]:
    draw = random.Random(seed)
    return {n: tuple(base * (1 + draw.gauss(0, spread)) for _ in range(5)) for n in range(rounds)}


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=40))
def test_a_median_lies_in_its_interval(samples: list[float]) -> None:
    found = median_interval(samples)
    assert found.low <= found.value <= found.high
    assert min(samples) <= found.low
    assert found.high <= max(samples)


def test_an_interval_holds_the_true_median_as_often_as_it_claims() -> None:
    draw = random.Random(1)
    held = 0
    for trial in range(200):
        found = median_interval([draw.gauss(10, 1) for _ in range(30)], seed=trial)
        held += found.low <= 10 <= found.high
    assert 0.88 <= held / 200 <= 0.995


def test_drift_between_rounds_cancels_in_a_ratio() -> None:
    drift = [1.0, 1.5, 2.0, 4.0]
    base = [[10 * d, 10 * d, 10 * d] for d in drift]
    mine = [[11 * d, 11 * d, 11 * d] for d in drift]
    found = ratio_interval(mine, base)
    assert (found.low, found.value, found.high) == pytest.approx((1.1, 1.1, 1.1))


def test_the_leader_is_not_one_that_was_measured_once_on_a_lucky_moment() -> None:
    assert leader({A: {0: (0.1,)}, B: noisy(1.0, 6, 0), C: noisy(1.2, 6, 1)}) == B


def test_a_candidate_that_is_clearly_worse_is_dropped_only_after_enough_rounds() -> None:
    early = {A: noisy(1.0, 2, 0), B: noisy(1.3, 2, 1)}
    later = {A: noisy(1.0, 4, 0), B: noisy(1.3, 4, 1)}
    assert clearly_worse(early, (A, B), 0.02) == set()
    assert clearly_worse(later, (A, B), 0.02) == {B}


def test_a_candidate_twice_as_slow_is_dropped_after_one_round() -> None:
    assert clearly_worse({A: noisy(1.0, 1, 0), B: noisy(2.5, 1, 1)}, (A, B), 0.02) == {B}


def test_equal_candidates_are_rarely_dropped() -> None:
    dropped = sum(
        bool(clearly_worse({A: noisy(1.0, 5, seed), B: noisy(1.0, 5, seed + 999)}, (A, B), 0.02)) for seed in range(100)
    )
    assert dropped <= 2


def test_equal_candidates_are_rarely_called_slower() -> None:
    """Eight equal candidates: the best of them is lucky, and the others must not be called slower for that."""
    candidates = tuple(Config(16, 16, 32, group_m=i) for i in range(1, 9))
    slower = 0
    for trial in range(20):
        measured = {config: noisy(1.0, 5, 100 * trial + i) for i, config in enumerate(candidates)}
        slower += sum(result.verdict == "slower" for result in results(candidates, measured, {}, set()))
    assert slower <= 7, "5 % of 140"


def test_verdicts_say_what_is_known() -> None:
    measured = {A: noisy(1.0, 5, 0), B: noisy(1.0, 5, 1), C: noisy(1.5, 5, 2)}
    found = {result.launch: result for result in results((C, B, A), measured, {}, set())}
    assert {found[A].verdict, found[B].verdict} == {"best", "tie"}
    assert found[C].verdict == "slower"


def test_too_few_rounds_are_unclear() -> None:
    found = results((A, B), {A: noisy(1.0, 2, 0), B: noisy(1.5, 2, 1)}, {}, set())
    assert [result.verdict for result in found] == ["best", "unclear"]


def test_failures_and_the_unmeasured_come_last_with_their_reason() -> None:
    found = results((A, B, C), {B: noisy(1.0, 3, 0)}, {A: "it crashed"}, set())
    assert [(result.launch, result.verdict) for result in found] == [(B, "best"), (C, "unmeasured"), (A, "failed")]
    assert found[-1].reason == "it crashed"


def test_a_dropped_candidate_is_not_the_best_even_with_a_smaller_median() -> None:
    measured = {A: noisy(1.0, 5, 0), B: {0: (0.9,), 1: (0.9,), 2: (0.9,), 3: (0.9,)}}
    assert results((A, B), measured, {}, {B})[0].launch == A
