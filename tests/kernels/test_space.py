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
    nvidia = spec.space.configs(Problem(16, 512, 512), find_target("sm_90"), axes)
    amd = spec.space.configs(Problem(16, 512, 512), find_target("gfx942"), axes)
    assert {config.block_n for config in amd} == {64}
    assert {config.waves_per_eu for config in amd} == {None, 3}
    assert {config.waves_per_eu for config in nvidia} == {None}, "AMD's parameters mean nothing to NVIDIA's compiler"


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="block_q"):
        find_kernel("dense").space.configs(Problem(16, 64, 64), find_target("sm_90"), {"block_q": (1,)})


def test_fp8_tiles_stay_within_a_group_of_scales() -> None:
    configs = find_kernel("fp8_block").space.configs(
        Problem(16, 512, 512, "fp8"), find_target("sm_90"), {"block_k": (64, 128, 256)}
    )
    assert {config.block_k for config in configs} == {64, 128}


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
