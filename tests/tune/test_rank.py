"""The order of compiled candidates: what decides it, and how well it does on recorded tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean

import msgspec
import pytest
from msgspec import structs

from tests.support.compile_tables import (
    H100,
    STRIX,
    compile_facts,
    dense_table,
    read_facts,
    regret,
    regrets,
    strix_table,
)
from traceanalyzer.commands.tune.compile.candidate_order import Score, preselect, score
from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.commands.tune.compile.device import device_of, device_of_name
from traceanalyzer.commands.tune.compile.screen import NotCompiled, rank_candidates, unfit
from traceanalyzer.hardware import find_gpu
from traceanalyzer.hardware.assembly import Assembly, Instructions
from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target

PROBLEM = Problem(64, 8192, 4096)
CONFIG = Config(64, 128, 64, num_warps=4, num_stages=4)
LOOP = Instructions(matrix=16, vector=200, scalar=20, memory=8, shared=24)
FACTS = CompileFacts("kernel", 65536, Assembly(120, 0, 0, 0, replace(LOOP, vector=400), LOOP))
DEVICE = device_of(gpu=H100)


def score_of(config: Config = CONFIG, facts: CompileFacts = FACTS, problem: Problem = PROBLEM) -> Score:
    return score(problem, config, facts, find_kernel("dense").traffic(problem, config), DEVICE)


def with_code(registers: int = 120, spills: int = 0, loop: Instructions = LOOP) -> CompileFacts:
    return CompileFacts("kernel", 65536, Assembly(registers, spills, 4 * spills, 0, replace(LOOP, vector=400), loop))


def test_spills_in_the_loop_cost() -> None:
    assert score_of(facts=with_code(255, 40, replace(LOOP, scratch=40))).cost > 1.5 * score_of().cost


def test_repeated_work_costs() -> None:
    assert score_of(facts=with_code(loop=replace(LOOP, vector=2000))).cost > 1.5 * score_of().cost


def test_registers_near_the_limit_cost() -> None:
    assert score_of(facts=with_code(registers=250)).cost > score_of(facts=with_code(registers=100)).cost


def test_a_deeper_pipeline_keeps_more_bytes_in_flight() -> None:
    shallow, deep = score_of(replace(CONFIG, num_stages=2)), score_of()
    assert deep.bytes_in_flight == 3 * shallow.bytes_in_flight
    assert deep.cost < shallow.cost


def test_too_few_programs_leave_the_gpu_idle() -> None:
    narrow = Problem(64, 512, 65536)
    assert score_of(replace(CONFIG, split_k=8), problem=narrow).cost < score_of(problem=narrow).cost


def test_padding_costs() -> None:
    few = Problem(1, 8192, 4096)
    assert (
        score_of(replace(CONFIG, block_m=16), problem=few).cost
        < score_of(replace(CONFIG, block_m=128), problem=few).cost
    )


def test_resident_programs_follow_the_scarcest_resource() -> None:
    units = DEVICE.units
    assert DEVICE.resident_programs(32, 1024, 4) == 16 * units, "64 warps"
    assert DEVICE.resident_programs(255, 1024, 4) == 2 * units, "65,536 registers"
    assert DEVICE.resident_programs(32, 100_000, 4) == 2 * units, "228 KiB of shared memory"
    assert DEVICE.resident_programs(255, 400_000, 32) == units, "never less than one"


def test_regret_is_what_the_first_candidates_lose() -> None:
    a, b, c = (replace(CONFIG, num_warps=warps) for warps in (1, 2, 4))
    measured = {a: 3.0, b: 2.0, c: 1.0}
    assert regret((a, b, c), measured, 1) == 3
    assert regret((a, b, c), measured, 2) == 2
    assert regret((a, b, c), measured, 3) == 1
    with pytest.raises(ValueError, match="none"):
        regret((), measured, 1)


def test_what_needs_too_much_shared_memory_comes_last_with_the_reason() -> None:
    large, broken = replace(CONFIG, num_stages=5), replace(CONFIG, num_stages=3)
    compiled = {large: replace(FACTS, shared_bytes=300_000), CONFIG: FACTS, broken: NotCompiled("CompilationError: no")}
    found = rank_candidates(find_kernel("dense"), PROBLEM, DEVICE, compiled)
    assert [(candidate.rank, candidate.fits) for candidate in found] == [(1, True), (None, False), (None, False)]
    assert "300,000 bytes of shared memory; sm_90 has 232,448" in (found[1].reason or "")
    assert found[2].reason == "CompilationError: no"
    assert found[0].work_ratio == 1


def test_what_was_not_compiled_in_time_is_not_said_to_be_unable_to_run() -> None:
    broken, slow = replace(CONFIG, num_stages=3), replace(CONFIG, num_stages=5)
    compiled = {broken: NotCompiled("no"), slow: NotCompiled("not compiled within 1 s", late=True), CONFIG: FACTS}
    found = rank_candidates(find_kernel("dense"), PROBLEM, DEVICE, compiled)
    assert [candidate.fits for candidate in found] == [True, None, False]
    assert found[1].reason == "not compiled within 1 s"


@pytest.mark.parametrize(("target", "limit"), [("gfx942", 65536), ("gfx950", 163840), ("sm_89", 101376)])
def test_every_target_has_its_own_limit(target: str, limit: int) -> None:
    assert unfit(replace(FACTS, shared_bytes=limit), find_target(target)) is None
    assert unfit(replace(FACTS, shared_bytes=limit + 1), find_target(target))


def test_preselection_keeps_the_order_and_the_number() -> None:
    spec = find_kernel("dense")
    configs = spec.space.configs(PROBLEM, find_target("sm_90"))
    chosen = preselect(PROBLEM, configs, spec.traffic, DEVICE, 50)
    assert len(chosen) == 50
    assert list(chosen) == [config for config in configs if config in set(chosen)]
    assert preselect(PROBLEM, configs[:3], spec.traffic, DEVICE, 50) == configs[:3]


def test_preselection_loses_no_value_that_was_asked_for() -> None:
    spec, few = find_kernel("dense"), Problem(16, 8192, 4096)
    pool = spec.space.pool(few, find_target("sm_90"), {"block_m": (16, 128)})
    guessed = preselect(few, pool.configs, spec.traffic, DEVICE, 40)
    assert {config.block_m for config in guessed} == {16}, "128 rows of padding look bad"
    chosen = preselect(few, pool.configs, spec.traffic, DEVICE, 40, pool.named)
    assert Counter(config.block_m for config in chosen) == {16: 20, 128: 20}
    assert set(chosen) >= set(preselect(few, pool.configs, spec.traffic, DEVICE, 20)), "the best of each"


def test_facts_survive_a_round_trip() -> None:
    assert msgspec.convert(msgspec.to_builtins(FACTS), CompileFacts) == FACTS


@pytest.mark.parametrize(
    ("target", "gpu", "words"),
    [("sm_90", "MI300X", "gfx942, not sm_90"), (None, None, "needed"), ("gfx90a", "no such GPU", "not known")],
)
def test_a_gpu_that_does_not_fit_is_refused(target: str | None, gpu: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        device_of(find_target(target) if target else None, gpu)


def test_a_gpu_without_an_architecture_takes_the_one_given() -> None:
    own = structs.replace(find_gpu("H100 SXM5"), name="Thing", target=None)
    assert device_of(find_target("sm_90"), own).name == "Thing"
    with pytest.raises(ValueError, match="architecture of Thing is not known"):
        device_of(None, own)


def test_the_local_gpu_is_known_by_its_drivers_name_else_by_its_kind() -> None:
    hopper = find_target("sm_90")
    assert device_of_name(hopper, "NVIDIA H200").name.startswith("H200")
    assert device_of_name(hopper, "NVIDIA Thing").target == hopper
    assert device_of_name(hopper, "AMD Instinct MI300X").target == hopper, "of another kind"


def test_the_order_loses_little_on_the_strix_halo_sweep(shared: Path) -> None:
    table, facts = strix_table(shared), read_facts()
    assert sum(len(measured) for measured in table.values()) == 48
    assert mean(regrets("moe_gate_up", STRIX, table, facts, 1)) <= 1.15
    assert mean(regrets("moe_gate_up", STRIX, table, facts, 3)) <= 1.05


def test_the_order_loses_little_on_published_dense_timings(shared: Path) -> None:
    table, facts = dense_table(shared), read_facts()
    assert len(table) == 6
    assert mean(regrets("dense", H100, table, facts, 1)) <= 1.15
    assert mean(regrets("dense", H100, table, facts, 3)) <= 1.05


@pytest.mark.slow
def test_the_order_holds_with_the_compiler_that_is_installed(shared: Path) -> None:
    strix, dense = strix_table(shared), dense_table(shared)
    facts = compile_facts("moe_gate_up", "gfx1151", strix) | compile_facts("dense", "sm_90", dense)
    assert mean(regrets("moe_gate_up", STRIX, strix, facts, 1)) <= 1.15
    assert mean(regrets("moe_gate_up", STRIX, strix, facts, 3)) <= 1.05
    assert mean(regrets("dense", H100, dense, facts, 3)) <= 1.05
