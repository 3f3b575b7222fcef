"""Estimates against published measurements: what the documentation claims."""

from __future__ import annotations

import pytest

from tests.support.published import Checked, check, mean_error, measurements
from traceanalyzer.commands.estimate.calibrate import TPOT_RANGE
from traceanalyzer.commands.estimate.compute import TTFT_LOW


@pytest.fixture(scope="module")
def checked() -> list[Checked]:
    return [check(one) for one in measurements()]


def test_measured_tpot_lies_in_the_stated_range(checked: list[Checked]) -> None:
    assert len(checked) >= 50
    for one in checked:
        assert TPOT_RANGE[0] <= one.tpot_ratio <= TPOT_RANGE[1], one.measured


def test_uncalibrated_estimates_of_points_not_used_for_the_defaults_are_off_by_a_sixth(checked: list[Checked]) -> None:
    held_out = [one.tpot_ratio for one in checked if one.measured.held_out]
    assert len(held_out) >= 50
    assert mean_error(held_out) < 0.17


def test_measured_ttft_lies_between_even_arrivals_and_all_at_once(checked: list[Checked]) -> None:
    compared = [one for one in checked if one.measured.ttft_ms is not None]
    assert len(compared) >= 40
    for one in compared:
        assert one.at_once is not None
        assert TTFT_LOW * one.even.ttft_ns / 1e6 <= (one.measured.ttft_ms or 0) <= one.at_once, one.measured


def test_every_measurement_names_its_source_and_whether_a_default_rests_on_it() -> None:
    found = measurements()
    assert all(one.source for one in found)
    used = [one for one in found if not one.held_out]
    assert 0 < len(used) < len(found) / 5


def test_mlperf_llama_2_70b_on_mi300x_is_estimated_too_fast_by_a_third(checked: list[Checked]) -> None:
    (found,) = [one for one in checked if one.measured.model == "llama-2-70b"]
    assert 1.2 < found.tpot_ratio < 1.45
