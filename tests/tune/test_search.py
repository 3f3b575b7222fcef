"""The search finds fast configurations in few measurements, in spaces of any shape, and never does worse than asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.made_up_sweeps import SHAPES, made_up_sweep
from tests.support.places import ROOT
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.replay.compute import quantile, replay
from traceanalyzer.commands.tune.search import search
from traceanalyzer.commands.tune.search.forest import fit_forest
from traceanalyzer.commands.tune.search.level_space import make_space
from traceanalyzer.commands.tune.tile_config import TileConfig
from traceanalyzer.problems import TraceError

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"


def test_the_recorded_sweep_of_a_gpu_is_searched_within_five_percent(shared: Path) -> None:
    sweep = read_sweep(shared / "data" / "tuner" / "clblast_gemm_rtx3090.json.gz")
    found = replay(sweep, 0.03, seeds=2)
    assert (found.space, found.evaluations) == (17956, 538)
    assert found.median_regret <= 0.05
    assert 0.08 <= found.random_median_regret <= 0.15


@pytest.mark.slow
def test_the_recorded_sweep_is_searched_within_five_percent_over_twenty_seeds(shared: Path) -> None:
    sweep = read_sweep(shared / "data" / "tuner" / "clblast_gemm_rtx3090.json.gz")
    found = replay(sweep)
    assert found.evaluations <= 0.03 * found.space
    assert found.median_regret <= 0.05
    assert found.p90_regret <= 0.05


@pytest.mark.parametrize("shape", SHAPES)
def test_made_up_spaces_are_searched_better_than_by_chance(shape: str) -> None:
    regrets, random = [], []
    for seed in range(2):
        found = replay(made_up_sweep(shape, 1000, seed), 0.08, seeds=2)
        assert found.evaluations <= 80
        regrets.append(found.median_regret)
        random.append(found.random_median_regret)
    assert np.median(regrets) <= 0.05
    assert np.median(regrets) < np.median(random)


def test_a_space_without_structure_is_searched_as_well_as_by_chance() -> None:
    rng = np.random.default_rng(0)
    points = tuple(
        SweepPoint(None, 1, None, TileConfig({"a": i % 10, "b": i // 10}), rounds=((float(time),),))
        for i, time in enumerate(rng.lognormal(0, 0.5, 200))
    )
    found = replay(Sweep(points, source="noise"), 0.1, seeds=15)
    assert found.median_regret <= 2.5 * found.random_median_regret


@pytest.mark.parametrize("share", [0.001, 0.03, 0.25, 1.0])
def test_the_budget_is_kept(share: float) -> None:
    sweep = made_up_sweep("failures", 48, 0)
    found = replay(sweep, share, seeds=5)
    assert found.space == len(sweep.points)
    assert found.evaluations <= max(1, int(share * found.space))
    if share == 1.0:
        assert found.median_regret <= 0.02


def test_every_m_is_a_space_of_its_own() -> None:
    found = replay(read_sweep(SEED), 0.5, seeds=2)
    assert (found.space, found.problems, found.evaluations) == (48, 8, 24)
    everything = replay(read_sweep(SEED), 1.0, seeds=2)
    assert (everything.evaluations, everything.median_regret) == (48, 0.0)


def test_a_replay_repeats_itself() -> None:
    sweep = made_up_sweep("cliffs", 300, 1)
    assert replay(sweep, 0.1, seeds=3) == replay(sweep, 0.1, seeds=3)


def test_one_parameter_constant_parameters_and_single_configurations() -> None:
    for values in (list(range(40)), [7]):
        points = tuple(
            SweepPoint(None, 1, None, TileConfig({"x": x, "fixed": 3, "name": "same"}), rounds=((1.0 + abs(x - 13),),))
            for x in values
        )
        found = replay(Sweep(points, source="line"), 0.5, seeds=4)
        assert found.median_regret == 0.0


def test_a_recording_without_timings_is_refused_and_failures_alone_are_no_space() -> None:
    failed = SweepPoint(None, 1, None, TileConfig({"x": 1}), reason="out of memory")
    with pytest.raises(TraceError, match="no timing"):
        replay(Sweep((failed,), source="sweep"))
    timed = replace(failed, config=TileConfig({"x": 2}), rounds=((1.0,),), reason=None)
    assert replay(Sweep((failed, timed), source="sweep"), 1.0, seeds=2).failed_configurations == 1


def test_a_search_that_met_only_failures_says_so() -> None:
    found = search([TileConfig({"x": 1}), TileConfig({"x": 2})], lambda index: [], budget=2)
    assert found.best(1) == []
    assert found.evaluations == 2


def test_known_results_cost_nothing_and_are_used() -> None:
    configs = [TileConfig({"x": x}) for x in range(20)]
    found = search(configs, lambda index: [2.0], budget=3, known={7: [1.0]})
    assert found.best(1) == [7]
    assert found.evaluations == 4


def test_a_lucky_measurement_is_measured_again() -> None:
    """Forty equal configurations but one 10 % faster, and noise that makes any of them look as fast once."""
    rng = np.random.default_rng(3)
    configs = [TileConfig({"a": i % 8, "b": i // 8}) for i in range(40)]
    calls: dict[int, int] = {}

    def measure(index: int) -> Sequence[float]:
        calls[index] = calls.get(index, 0) + 1
        return [float(t) for t in rng.normal(0.9 if index == 11 else 1.0, 0.05, 3)]

    found = search(configs, measure, budget=60)
    assert found.evaluations <= 60
    assert max(calls.values()) > 1
    assert found.best(1) == [11]


def test_a_space_orders_numbers_and_tells_other_values_apart() -> None:
    space = make_space([{"n": 8, "t": "b", "c": 1}, {"n": 128, "t": "a", "c": 1}, {"n": 16, "t": None, "c": 1}])
    assert space.names == ("n", "t")
    assert space.codes[:, 0].tolist() == [0, 2, 1]
    assert space.ordinal.tolist() == [True, False]
    near, far = space.distance(0, np.array([2, 1]))
    assert near < far


def test_a_forest_finds_a_step() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (200, 3)).astype(np.int32)
    target = np.where(codes[:, 1] >= 2, 1.0, 0.0)
    mean, spread = fit_forest(codes, target, rng).predict(np.array([[0, 0, 0], [0, 3, 0]], dtype=np.int32))
    assert mean == pytest.approx([0, 1], abs=0.1)
    assert (spread >= 0).all()


def test_quantiles_are_by_nearest_rank() -> None:
    assert quantile([4, 1, 3, 2], 0.5) == 2
    assert quantile(list(range(1, 11)), 0.9) == 9
    assert quantile([5.0], 0.9) == 5.0
