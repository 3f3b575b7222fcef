"""Problems, configurations, targets and search spaces."""

from __future__ import annotations

import pytest

from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target

KERNELS = tuple(HOME)


def test_a_problem_counts_tokens_not_rows() -> None:
    assert Problem(20, 64, 64, experts=32, top_k=4).tokens == 5
    assert Problem(20, 64, 64).tokens == 20


@pytest.mark.parametrize(
    "values",
    [
        {"m": 0, "n": 1, "k": 1},
        {"m": 1, "n": 1, "k": 1, "dtype": "int3"},
        {"m": 1, "n": 1, "k": 1, "experts": 4},
        {"m": 3, "n": 1, "k": 1, "experts": 4, "top_k": 2},
        {"m": 8, "n": 1, "k": 1, "experts": 4, "top_k": 8},
        {"m": 8, "n": 1},
        {"m": 8, "n": 1, "k": True},
        {"m": 8, "n": 1, "k": 1, "colour": 3},
    ],
)
def test_an_impossible_problem_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Problem.from_dict(values)


def test_problem_and_config_survive_a_round_trip() -> None:
    problem = Problem(16, 64, 96, "fp16", 8, 4)
    config = Config(16, 32, 64, 2, 8, 4, 3, matrix_instr_nonkdim=16)
    assert Problem.from_dict(problem.to_dict()) == problem
    assert Config.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "values", [{"block_m": 48}, {"block_m": None}, {"num_warps": 3}, {"split_k": 0}, {"num_stages": -1}]
)
def test_an_impossible_config_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Config.from_dict({"block_m": 16, "block_n": 16, "block_k": 16} | values)


@pytest.mark.parametrize(
    ("written", "name"),
    [("sm90", "sm_90"), ("SM_80", "sm_80"), ("100", "sm_100"), ("gfx942:sramecc+:xnack-", "gfx942")],
)
def test_an_architecture_is_known_under_its_spellings(written: str, name: str) -> None:
    assert find_target(written).name == name


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"sm_42.*gfx942"):
        find_target("sm_42")


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", ["sm_90", "gfx1151"])
def test_every_space_has_candidates_for_every_named_shape(name: str, target: str) -> None:
    spec = find_kernel(name)
    assert spec.space.shapes
    for problem in spec.space.shapes.values():
        assert spec.fault(problem) is None
        configs = spec.space.configs(problem, find_target(target))
        assert len(configs) > 20
        assert len(set(configs)) == len(configs)


def test_a_space_holds_no_tile_larger_than_the_rows_there_are() -> None:
    spec = find_kernel("dense")
    few = spec.space.configs(Problem(1, 512, 512), find_target("sm_90"))
    many = spec.space.configs(Problem(128, 512, 512), find_target("sm_90"))
    assert {config.block_m for config in few} == {16}
    assert {config.block_m for config in many} == {16, 32, 64, 128}


def test_axes_given_replace_the_spaces_own() -> None:
    spec = find_kernel("dense")
    axes = {"block_n": (64,), "num_warps": (2, 4), "waves_per_eu": (None, 3)}
    nvidia = spec.space.pool(Problem(16, 512, 512), find_target("sm_90"), axes)
    amd = spec.space.pool(Problem(16, 512, 512), find_target("gfx942"), axes)
    assert {config.block_n for config in amd.configs} == {64}
    assert {config.waves_per_eu for config in amd.configs} == {None, 3}
    assert {config.waves_per_eu for config in nvidia.configs} == {None}
    assert amd.untried == {}
    assert "AMD's compiler" in nvidia.untried["waves_per_eu=3"]


@pytest.mark.parametrize(("axis", "value"), [("block_m", 128), ("block_n", 1024), ("block_k", 1024), ("split_k", 16)])
def test_a_value_asked_for_is_tried_although_the_problem_is_smaller(axis: str, value: int) -> None:
    space = find_kernel("dense").space
    problem = Problem(4, 256, 256)
    own = space.configs(problem, find_target("sm_90"))
    assert value not in {getattr(config, axis) for config in own}
    pool = space.pool(problem, find_target("sm_90"), {axis: (value,)})
    assert {getattr(config, axis) for config in pool.configs} == {value}


def test_a_value_asked_for_that_nothing_can_have_is_told_with_the_reason() -> None:
    pool = find_kernel("dense").space.pool(Problem(16, 512, 512), find_target("sm_90"), {"group_m": (1, 8)})
    assert pool.untried == {"group_m=8": "group_m orders row tiles, and there is only one"}
    assert {config.group_m for config in pool.configs} == {1}
    assert pool.named == ("group_m",)


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="block_q"):
        find_kernel("dense").space.pool(Problem(16, 64, 64), find_target("sm_90"), {"block_q": (1,)})


def test_fp8_tiles_stay_within_a_group_of_scales() -> None:
    space, problem, target = find_kernel("fp8_block").space, Problem(16, 512, 512, "fp8"), find_target("sm_90")
    pool = space.pool(problem, target, {"block_k": (64, 128, 256)})
    assert {config.block_k for config in pool.configs} == {64, 128}
    assert "crosses a group" in pool.untried["block_k=256"]
    assert "crosses a group" in (space.impossible(problem, Config(16, 64, 256), target) or "")
    assert space.impossible(problem, Config(128, 64, 128), target) is None, "larger than the rows, and right"


@pytest.mark.parametrize(
    ("name", "problem", "words"),
    [
        ("dense", Problem(4, 64, 64, "fp8"), "bf16"),
        ("dense", Problem(4, 64, 64, experts=4, top_k=2), "dense"),
        ("moe_down", Problem(4, 64, 64), "experts"),
        ("moe_gate_up", Problem(4, 64, 70, experts=4, top_k=2), "multiples of 32"),
        ("moe_gate_up", Problem(4, 63, 64, experts=4, top_k=2), "multiples"),
    ],
)
def test_a_problem_a_kernel_cannot_do_is_named(name: str, problem: Problem, words: str) -> None:
    assert words in (find_kernel(name).fault(problem) or "")


def test_an_unknown_kernel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="moe_gate_up"):
        find_kernel("attention")


@pytest.mark.parametrize("name", KERNELS)
def test_traffic_loads_at_least_what_must_cross_the_bus(name: str) -> None:
    spec = find_kernel(name)
    for problem in spec.space.shapes.values():
        traffic = spec.traffic(problem, Config(16, 64, 64))
        weights = traffic.unique_bytes - 8 * problem.m * (problem.n + problem.k)
        assert traffic.programs * traffic.iterations * traffic.step_bytes >= weights * 0.99
        assert 0 < traffic.padded_share <= 1
