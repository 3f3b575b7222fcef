"""Every kernel against its float64 reference, in Triton's interpreter at tiny shapes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.places import ROOT
from traceanalyzer.kernels.problem import Config, Problem

FP16 = {"dtype": "fp16"}
MOE = {"experts": 4, "top_k": 2}

CASES: dict[str, tuple[str, Problem, Config, str, float]] = {
    "dense one row": ("dense", Problem(1, 40, 70, **FP16), Config(16, 16, 32), "", 1e-3),
    "dense ragged, split, grouped": (
        "dense", Problem(33, 40, 70, **FP16), Config(16, 32, 32, split_k=2, group_m=2), "", 1e-3,
    ),
    "dense more parts than steps": ("dense", Problem(2, 16, 32, **FP16), Config(16, 16, 32, split_k=4), "", 1e-3),
    "dense fp32": ("dense", Problem(17, 16, 64, dtype="fp32"), Config(16, 16, 32, group_m=8), "", 1e-6),
    "fp8 one row": ("fp8_block", Problem(1, 140, 300, dtype="fp8"), Config(16, 64, 128), "", 1e-3),
    "fp8 ragged, split": ("fp8_block", Problem(5, 40, 192, dtype="fp8"), Config(16, 32, 64, split_k=2), "", 1e-3),
    "gate_up one token": ("moe_gate_up", Problem(2, 40, 96, **FP16, **MOE), Config(16, 16, 64), "uniform", 2e-3),
    "gate_up empty experts": ("moe_gate_up", Problem(10, 40, 96, **FP16, **MOE), Config(16, 32, 64), "5,0,0,5", 2e-3),
    "gate_up split": (
        "moe_gate_up", Problem(10, 40, 96, **FP16, **MOE), Config(16, 32, 64, split_k=2, group_m=2), "5,1,0,4", 2e-3,
    ),
    "gate_up several tiles an expert": (
        "moe_gate_up", Problem(40, 32, 64, **FP16, **MOE), Config(16, 32, 64, group_m=2), "20,17,2,1", 2e-3,
    ),
    "gate_up bf16": ("moe_gate_up", Problem(4, 32, 64, **MOE), Config(16, 32, 64), "uniform", 1e-2),
    "down one token": ("moe_down", Problem(2, 40, 96, **FP16, **MOE), Config(16, 16, 64), "uniform", 2e-3),
    "down empty experts, split": (
        "moe_down", Problem(10, 40, 96, **FP16, **MOE), Config(16, 32, 64, split_k=2), "5,0,0,5", 2e-3,
    ),
    "down skewed": ("moe_down", Problem(24, 40, 64, **FP16, **MOE), Config(16, 32, 64, group_m=8), "skewed", 2e-3),
}  # fmt: skip


@pytest.fixture(scope="module")
def errors() -> dict[str, float]:
    """Run every case in one process of its own."""
    questions = [
        [case, name, problem.to_dict(), config.to_dict(), routing]
        for case, (name, problem, config, routing, _) in CASES.items()
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.interpreted_kernels"],
        cwd=ROOT,
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_agrees_with_its_reference(case: str, errors: dict[str, float]) -> None:
    assert errors[case] <= CASES[case][-1]
