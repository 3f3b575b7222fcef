"""Every kernel compiles for every target, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceanalyzer.commands.tune.compile.compilation import CompileFacts, compile_launch
from traceanalyzer.commands.tune.compile.screen import Compiling, compile_all
from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942", "gfx950", "gfx1151")


def problem_of(kernel: str) -> Problem:
    if kernel.startswith("moe"):
        return Problem(8, 256, 256, experts=4, top_k=2)
    return Problem(8, 256, 256, "fp8" if kernel == "fp8_block" else "bf16")


def compiled(kernel: str, target: str, *configs: Config) -> list[CompileFacts]:
    compiled = compile_all(kernel, problem_of(kernel), find_target(target), configs, Compiling(1, 300, None))
    facts = [compiled[config] for config in configs]
    for config, fact in zip(configs, facts, strict=True):
        assert isinstance(fact, CompileFacts), f"{config.label}: {fact}"
    return [fact for fact in facts if isinstance(fact, CompileFacts)]


@pytest.mark.parametrize("target", ["sm_90", "gfx1151"])
def test_a_kernel_compiles_and_its_code_can_be_read(target: str) -> None:
    facts = compiled("moe_gate_up", target, Config(16, 32, 64, num_warps=2, num_stages=2))[0]
    assert facts.name == "moe_kernel"
    assert 16 < (facts.assembly.registers or 0) <= 256
    assert facts.assembly.spills == 0
    assert facts.shared_bytes > 0
    assert 0 < facts.assembly.loop.matrix <= facts.assembly.whole.matrix
    assert facts.assembly.loop.vector < facts.assembly.whole.vector


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", HOME)
def test_every_kernel_compiles_for_every_target(kernel: str, target: str) -> None:
    configs = [
        Config(16, 64, 64, num_warps=4, num_stages=2),
        Config(16, 32, 64, split_k=2, group_m=8, num_warps=2, num_stages=3),
        Config(16, 64, 128, num_warps=8, num_stages=1),
    ]
    for facts in compiled(kernel, target, *configs):
        assert facts.assembly.whole.matrix > 0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_what_finishes_a_product_compiles_for_every_target(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # unset, it warns
    names = set()
    for kernel in HOME:
        spec, place = find_kernel(kernel), find_target(target)
        case = spec.compile_case(problem_of(kernel), place)
        for launch in spec.prepare(case, Config(16, 32, 64, split_k=2)).launches[1:]:
            names.add(compile_launch(launch, place).name)
    assert names == {"sum_splits_kernel", "moe_finish_kernel", "moe_combine_kernel"}


@pytest.mark.slow
@pytest.mark.parametrize("parameter", [{"waves_per_eu": 2}, {"matrix_instr_nonkdim": 16}])
def test_amds_own_parameters_reach_its_compiler(parameter: dict[str, int]) -> None:
    assert compiled("dense", "gfx942", Config(16, 64, 64, num_warps=4, **parameter))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_the_dense_kernel_compiles_for_other_types(dtype: str) -> None:
    config = Config(16, 64, 64, num_warps=4, num_stages=2)
    compiled = compile_all(
        "dense", Problem(8, 256, 256, dtype), find_target("sm_90"), [config], Compiling(1, 300, None)
    )
    assert isinstance(compiled[config], CompileFacts)
