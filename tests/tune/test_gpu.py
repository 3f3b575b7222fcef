"""Everything that needs a GPU; skipped with a reason where there is none."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import pytest
import torch
from click.testing import CliRunner

from traceanalyzer.cli.main import cli
from traceanalyzer.commands.tune.compile.device import device_of_name
from traceanalyzer.commands.tune.measure.measuring import local_target, relative_error
from traceanalyzer.commands.tune.measure.timing import GpuTimer
from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.problem import Config, Problem

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU on this machine")

CONFIGS = (
    Config(16, 64, 64, num_warps=4, num_stages=2),
    Config(16, 32, 64, split_k=2, group_m=8, num_warps=2, num_stages=3),
    Config(32, 128, 128, num_warps=8, num_stages=2),
)


def problems(kernel: str) -> list[Problem]:
    if kernel.startswith("moe"):
        return [Problem(m, 384, 352, experts=8, top_k=4) for m in (4, 20, 256)]
    dtype = "fp8" if kernel == "fp8_block" else "bf16"
    return [Problem(m, 392, 360, dtype) for m in (1, 17, 200)]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.label)
@pytest.mark.parametrize("kernel", HOME)
def test_a_kernel_is_right_on_the_gpu(kernel: str, config: Config) -> None:
    spec = find_kernel(kernel)
    for problem in problems(kernel):
        case = spec.make_case(problem, local_target(), "cuda", 0, "skewed")
        prepared = spec.prepare(case, config)
        prepared.output.fill_(float("nan"))
        prepared()
        assert relative_error(prepared.output, spec.reference(case)) <= spec.tolerance


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_the_dense_kernel_is_right_in_other_types(dtype: str) -> None:
    spec = find_kernel("dense")
    case = spec.make_case(Problem(33, 200, 264, dtype), local_target(), "cuda", 0, "")
    prepared = spec.prepare(case, CONFIGS[0])
    prepared()
    assert relative_error(prepared.output, spec.reference(case)) <= (1e-4 if dtype == "fp32" else 2e-3)


def test_a_run_measures_and_its_sweep_can_be_read(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.jsonl"
    arguments = ["tune", "run", "--kernel", "moe_gate_up", "--shape", "gpt-oss-20b", "--concurrency", "1,8"]
    axes = ["--axis", "block_k=128", "--axis", "split_k=1", "--axis", "group_m=1", "--axis", "num_stages=2"]
    options = ["--top", "4", "--rounds", "4", "--samples", "5", "--jobs", "8", "--output", str(sweep), "--json"]
    result = CliRunner().invoke(cli, [*arguments, *axes, *options])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["measured"] is True
    for problem in document["problems"]:
        assert problem["best"] is not None
        assert problem["results"][0]["median_ms"] > 0
        assert not [found for found in problem["results"] if found["verdict"] == "failed"]


def test_verify_finds_a_crippled_tile_slower() -> None:
    arguments = ["tune", "verify", "--kernel", "dense", "--shape", "n=8192,k=8192", "--m", "16", "--rounds", "6"]
    tiles = ["--before", "16x128x128,num_warps=4,num_stages=3", "--after", "16x16x32,num_warps=4,num_stages=1"]
    result = CliRunner().invoke(cli, [*arguments, *tiles, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["problems"][0]["verdict"] == "slower"


def test_a_sample_is_of_a_captured_graph_with_a_cold_cache() -> None:
    spec, problem = find_kernel("dense"), Problem(1, 4096, 4096)
    prepared = spec.prepare(spec.make_case(problem, local_target(), "cuda", 0, ""), CONFIGS[0])
    timer = GpuTimer()
    samples = timer.sample("one", prepared, 20)
    assert timer._graphs["one"] is not prepared, "capturing did not fail"
    bandwidth = device_of_name(local_target(), torch.cuda.get_device_name(0)).bandwidth
    assert median(samples) > 0.9e3 * 2 * problem.n * problem.k / bandwidth, "weights come from device memory"


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize(
    ("kernel", "backend", "shape"),
    [
        ("fused_moe", "fused_moe", "n=1024,k=512,experts=8,top_k=2"),
        ("moe_gate_up", "triton_kernels", "n=5888,k=2944,experts=32,top_k=4"),
        ("moe_down", "triton_kernels", "n=2944,k=2944,experts=32,top_k=4"),
    ],
)
def test_vllms_own_kernels_are_right_and_can_be_timed(kernel: str, backend: str, shape: str) -> None:
    arguments = ["tune", "run", "--kernel", kernel, "--backend", backend, "--shape", shape, "--concurrency", "4"]
    options = ["--config", "16x128x128,num_warps=8", "--rounds", "1", "--samples", "3", "--json"]
    result = CliRunner().invoke(cli, [*arguments, *options])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["problems"][0]["results"]
    assert found["verdict"] == "best", found["reason"]
