"""Calibration: two parameters from serving results, shares from a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deployments import deployment
from traceanalyzer.commands.estimate.calibrate import Observation, fit, from_serving, observations, one_series
from traceanalyzer.commands.estimate.compute import estimate
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.from_roofline import calibrate
from traceanalyzer.commands.estimate.schedule import Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes
from traceanalyzer.model import Parallel
from traceanalyzer.roofline import Roofline
from traceanalyzer.serving.grouping import select
from traceanalyzer.serving.read import read

TABLE = """| Conc. | RPS | Avg Lat.(s) | Gen. toks/s | Avg TTFT(s) | Avg TPOT(s) |
|---|---|---|---|---|---|
| 1 | 0.06 | 15.851 | 32.30 | 0.116 | 0.031 |
| 2 | 0.10 | 19.188 | 53.37 | 0.177 | 0.037 |
| 3 | 0.12 | 25.627 | 59.91 | 0.275 | 0.050 |
| 4 | 0.16 | 24.882 | 82.26 | 0.326 | 0.048 |
| 5 | 0.20 | 25.403 | 100.71 | 0.389 | 0.049 |
| 6 | 0.22 | 26.923 | 113.95 | 0.396 | 0.052 |
| 7 | 0.25 | 27.975 | 127.98 | 0.487 | 0.054 |
| 8 | 0.29 | 27.591 | 148.31 | 0.551 | 0.053 |
| 16 | 0.46 | 34.785 | 235.23 | 1.517 | 0.065 |
| 32 | 0.82 | 39.085 | 418.71 | 1.965 | 0.073 |
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "strix_halo.md"
    path.write_text(TABLE)
    return path


def test_ten_loads_on_strix_halo_are_fitted_within_5_percent_and_left_out_ones_met_within_10(table: Path) -> None:
    calibration = from_serving(
        deployment("gpt-oss-20b", "Radeon 8060S"), observations(one_series(read(str(table)).results), 128, None)
    )
    found = calibration.told
    assert len(found.points) == 10
    assert found.error is not None
    assert found.error <= 0.05
    assert found.held_out_error is not None
    assert found.error < found.held_out_error <= 0.10
    assert found.largest_held_out_error is not None
    assert found.largest_held_out_error < 0.15
    assert found.slowness is not None
    # Physical: no faster than the peaks, and a host that costs something.
    assert all(share.memory <= 1 for share in calibration.efficiencies.shares.values())
    assert 5e6 < calibration.efficiencies.step_ns < 25e6


def test_the_fit_does_not_hang_on_the_prompts_that_the_table_leaves_out(table: Path) -> None:
    results = one_series(read(str(table)).results)
    for isl in (16, 1000):
        found = from_serving(deployment("gpt-oss-20b", "Radeon 8060S"), observations(results, isl, None)).told
        assert (found.error or 1) <= 0.05
        assert (found.held_out_error or 1) <= 0.10


def test_the_sweep_with_the_wrong_tiles_is_fitted_badly_and_that_is_told(shared: Path) -> None:
    results = read(str(shared / "data/serving_results/strix_halo_tables.csv")).results
    with pytest.raises(EstimateError, match="table = final; table = first_attempt"):
        one_series(results)
    chosen = one_series(select(results, ["table=first_attempt"], "--select"))
    own = deployment("gpt-oss-20b", "Radeon 8060S")
    found = from_serving(own, observations(chosen, 128, None))
    assert (found.told.held_out_error or 0) > 0.2
    calibrated = estimate(replace(own, efficiencies=found.efficiencies), 128, 512, 8, calibration=found)
    assert calibrated.answer.tpot_range_ms is not None
    low, high = calibrated.answer.tpot_range_ms
    assert high > 1.5 * low


def test_answers_and_fine_tpot_follow_from_latency_and_tokens_per_second(table: Path) -> None:
    first = observations(one_series(read(str(table)).results), 128, None)[0]
    assert first.traffic.osl == 512
    assert first.tpot_ns == pytest.approx((15.851 - 0.116) / 511 * 1e9)


@settings(max_examples=40, deadline=None)
@given(slowness=st.floats(0.8, 4), step=st.floats(0, 2e7))
def test_a_line_through_exact_points_is_found_again(slowness: float, step: float) -> None:
    bases = [1e6, 4e6, 9e6, 3e7]
    found = fit(bases, [slowness * base + step for base in bases], 0.8, 1e6)
    assert found.slowness == pytest.approx(slowness, rel=1e-6)
    assert found.step_ns == pytest.approx(step, abs=10)


def test_what_the_link_adds_is_no_slowness_of_kernels() -> None:
    bases, links = [1e6, 4e6, 9e6], [5e6, 6e6, 8e6]
    found = fit(bases, [1.5 * base + link + 1e6 for base, link in zip(bases, links, strict=True)], 0.8, 0.0, links)
    assert (found.slowness, found.step_ns) == (pytest.approx(1.5), pytest.approx(1e6))
    assert fit([2e6], [9e6], 0.5, 1e6, [4e6]).slowness == pytest.approx(2)


def test_the_fit_keeps_to_what_is_physical() -> None:
    bases = [1e6, 2e6, 4e6]
    assert fit(bases, [5e5, 2e6, 5e6], 0.5, 0.0).step_ns == 0
    assert fit(bases, [9e6, 9.1e6, 9.2e6], 0.7, 0.0).slowness == 0.7
    # One load cannot tell a slow kernel from a slow host.
    assert fit([2e6], [5e6], 0.5, 1e6).step_ns == 1e6
    assert fit([2e6], [5e6], 0.5, 1e6).slowness == pytest.approx(2)


def test_a_calibrated_estimate_gives_back_what_it_was_fitted_to() -> None:
    own = deployment("llama-3.1-8b", "H100 SXM5")
    slow = replace(own, efficiencies=replace(own.efficiencies.slowed(2), kernel_ns=3200.0, step_ns=4e6))
    loads = [Traffic(200, 100, n) for n in (1, 8, 64)]
    seen = [Observation(load, steady(StepTimes(slow), load).tpot_ns or 0) for load in loads]
    found = from_serving(own, seen)
    assert found.told.slowness == pytest.approx(2, rel=1e-3)
    assert found.efficiencies.step_ns == pytest.approx(4e6, rel=1e-2)
    again = estimate(replace(own, efficiencies=found.efficiencies), 200, 100, 8, calibration=found)
    assert again.served.tpot_ns == pytest.approx(seen[1].tpot_ns, rel=1e-3)
    assert any("left out of the fit" in line for line in again.answer.assumptions)


@pytest.mark.parametrize("parallel", [Parallel(tp=4), Parallel(tp=2, pp=2)])
def test_the_link_keeps_its_time_so_that_layouts_give_back_what_was_fitted(parallel: Parallel) -> None:
    own = deployment("llama-3.1-8b", "RTX 6000 Ada", parallel=parallel)
    slow = replace(own, efficiencies=replace(own.efficiencies.slowed(2), kernel_ns=3200.0, step_ns=4e6))
    loads = [Traffic(200, 100, n) for n in (1, 8, 64)]
    seen = [Observation(load, steady(StepTimes(slow), load).tpot_ns or 0) for load in loads]
    found = from_serving(own, seen)
    calibrated = StepTimes(replace(own, efficiencies=found.efficiencies))
    for point in found.told.points:
        traffic = Traffic(200, 100, point.batch)
        assert point.fitted_ms * 1e6 == pytest.approx(steady(calibrated, traffic).tpot_ns, rel=1e-3)
        assert point.fitted_ms == pytest.approx(point.tpot_ms, rel=0.01)
    assert found.told.slowness == pytest.approx(2, rel=0.02)


def test_one_load_has_no_held_out_error_and_keeps_the_wide_range() -> None:
    own = deployment("llama-3.1-8b", "H100 SXM5")
    found = from_serving(own, [Observation(Traffic(200, 100, 4), 20e6)])
    assert found.told.held_out_error is None
    assert found.tpot_range is None
    again = estimate(replace(own, efficiencies=found.efficiencies), 200, 100, 4, calibration=found)
    assert again.answer.tpot_range_ms is not None
    assert again.answer.tpot_range_ms[1] * 1e6 > 1.5 * (again.served.tpot_ns or 0)
    with pytest.raises(EstimateError):
        from_serving(own, [])


def test_a_trace_calibrates_the_classes_it_shows_and_says_what_it_does_not() -> None:
    given_ = deployment("llama-3.1-8b", "H100 SXM5").efficiencies
    plain = {"plausible": True, "redundant": False, "compute_ns": None, "memory_ns": None, "floor_ns": 1.0}
    rows = [
        SimpleNamespace(
            **{**plain, "role": role, "bound": bound, "measured_ns": ns, "count": count, f"{bound}_ns": floor}
        )
        for role, bound, ns, count, floor in (
            ("qkv_proj", "memory", 1000e3, 10, 600e3),
            ("o_proj", "memory", 1000e3, 10, 400e3),
            ("attention", "compute", 1e3, 1, 0.5e3),
        )
    ]
    latency = SimpleNamespace(ns=2e3, measured=True)
    roof = SimpleNamespace(rows=rows, latency=latency, copies_ns=0.0, steps=1, period_ns=0.0, measured_ns=0.0)
    found = calibrate(given_, cast("Roofline", roof))
    assert found.efficiencies.shares["dense"].memory == pytest.approx(1000e3 / (2000e3 - 20 * 2e3))
    assert found.efficiencies.shares["dense"].compute == given_.shares["dense"].compute
    # Less than a hundredth of the time tells nothing.
    assert found.efficiencies.shares["attention"] == given_.shares["attention"]
    assert any(line.startswith("dense") for line in found.told.calibrated)
    assert any(line.startswith("experts") for line in found.told.not_calibrated)
    assert found.efficiencies.kernel_ns == 2e3
