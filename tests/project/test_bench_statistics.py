"""Medians, pairs, growth; who else used the machine; the order of runs."""

from __future__ import annotations

import pytest

from bench.disturbance import TICK_S, busy_s, disturbed, others_s
from bench.measure import Measurement
from bench.rounds import interleaved, undisturbed
from bench.summary import exponent, ratios, rounded, spread


def measured(others: float | None, wall: float = 10.0, status: int = 0) -> Measurement:
    return Measurement(wall, 1.0, 100.0, status, "", others_s=others)


def test_growth_of_a_power_law_is_its_exponent() -> None:
    sizes = [5.0, 50.0, 500.0, 2000.0]
    assert exponent(sizes, [0.3 * size**1.25 for size in sizes]) == pytest.approx(1.25)


def test_a_fixed_cost_pulls_growth_below_linear() -> None:
    sizes = [5.0, 50.0, 500.0]
    found = exponent(sizes, [1 + 0.01 * size for size in sizes])
    assert found is not None
    assert 0.2 < found < 0.9


def test_one_size_has_no_growth() -> None:
    assert exponent([500.0, 500.0], [1.0, 2.0]) is None


def test_ratios_are_taken_run_by_run() -> None:
    assert ratios([10.0, 40.0, 90.0], [1.0, 2.0, 3.0]) == {"median": 20.0, "min": 10.0, "max": 30.0, "runs": 3}


def test_ratios_without_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        ratios([], [1.0])


def test_spread_of_one_run_is_that_run() -> None:
    assert spread([2.0]) == {"median": 2.0, "min": 2.0, "max": 2.0, "runs": 1}


def test_rounding_goes_through_lists_and_leaves_integers() -> None:
    assert rounded({"a": [1.23456, 123456], "b": None}) == {"a": [1.235, 123456], "b": None}


def test_busy_time_leaves_out_idle_waiting_and_guests_counted_twice() -> None:
    stat = "cpu  100 20 30 999999 888 4 5 6 50 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert busy_s(stat) == pytest.approx(165 * TICK_S)
    assert busy_s("intr 5\n") is None


def test_what_the_command_used_is_not_others() -> None:
    assert others_s(100.0, 107.0, 6.5) == pytest.approx(0.5)
    assert others_s(100.0, 107.0, 7.5) == 0.0
    assert others_s(None, 107.0, 1.0) is None


def test_a_run_is_disturbed_above_a_share_of_a_core_and_some_ticks() -> None:
    assert not disturbed(0.5, 10.0)
    assert disturbed(0.6, 10.0)
    assert not disturbed(2 * TICK_S, 0.1)
    assert not disturbed(None, 10.0)


def test_a_disturbed_run_is_repeated_until_a_quiet_one() -> None:
    runs = iter([measured(5.0), measured(3.0), measured(0.1), measured(0.0)])
    found = undisturbed(lambda: next(runs), retries=3)
    assert (found.attempts, found.disturbed, found.measurement.others_s) == (3, False, 0.1)


def test_without_a_quiet_run_the_least_disturbed_counts_and_says_so() -> None:
    runs = iter([measured(5.0), measured(3.0), measured(4.0)])
    found = undisturbed(lambda: next(runs), retries=2)
    assert (found.attempts, found.disturbed, found.others) == (3, True, pytest.approx(0.3))


def test_a_failed_run_is_not_repeated() -> None:
    runs = iter([measured(5.0), measured(9.0, status=1)])
    found = undisturbed(lambda: next(runs), retries=3)
    assert (found.attempts, found.measurement.status) == (2, 1)


def test_every_repetition_starts_with_another_route_and_runs_each_once() -> None:
    assert list(interleaved({"a": 3, "b": 3, "c": 1})) == [
        (0, "a"),
        (0, "b"),
        (0, "c"),
        (1, "b"),
        (1, "a"),
        (2, "a"),
        (2, "b"),
    ]
