"""Student's t against values of printed tables."""

from __future__ import annotations

import pytest

from traceanalyzer.serving.noise import difference_half_width, estimate, t_quantile


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (29, 2.0452), (120, 1.9799)],
)
def test_quantiles_are_those_of_the_tables(freedom: int, t: float) -> None:
    assert t_quantile(freedom) == pytest.approx(t, abs=5e-5)


def test_other_levels_follow() -> None:
    assert t_quantile(7, 0.99) == pytest.approx(3.4995, abs=5e-5)


def test_identical_repetitions_have_no_noise() -> None:
    assert difference_half_width(estimate([2.0, 2.0]), estimate([3.0, 3.0])) == 0.0


def test_single_runs_have_unknown_noise() -> None:
    assert difference_half_width(estimate([2.0]), estimate([3.0])) is None
