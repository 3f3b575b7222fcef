"""The references and number formats, against values worked out by hand."""

from __future__ import annotations

import pytest
import torch

from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.launch import Case
from traceanalyzer.kernels.moe_mxfp4 import dequantize, random_weights
from traceanalyzer.kernels.problem import Problem
from traceanalyzer.kernels.routing import route
from traceanalyzer.kernels.target import INTERPRETER, find_target


def test_mxfp4_bytes_hold_the_earlier_element_in_their_lower_half() -> None:
    packed = torch.zeros(1, 16, dtype=torch.uint8)
    packed[0, 0] = 0x2 | 0xF << 4  # 1.0, then -6.0
    scale = torch.tensor([[128]], dtype=torch.uint8)  # 2^1
    values = dequantize(packed, scale)[0]
    assert values[:3].tolist() == [2.0, -12.0, 0.0]


def test_random_mxfp4_weights_keep_the_size_of_the_activations() -> None:
    packed, scale = random_weights((2, 64, 1024), torch.Generator().manual_seed(0), "cpu")
    assert 0.3 < dequantize(packed, scale).std().item() * 1024**0.5 < 3


def test_gate_up_clamps_and_gates_interleaved_columns() -> None:
    problem = Problem(1, 2, 32, "fp16", experts=1, top_k=1)
    w = torch.zeros(1, 2, 16, dtype=torch.uint8)
    w[0, 0, 0], w[0, 1, 0] = 0x7, 0x7  # 6.0 on the first k of gate and of up
    tensors = {
        "x": torch.zeros(1, 32, dtype=torch.float16),
        "w": w,
        "w_scale": torch.full((1, 2, 1), 127, dtype=torch.uint8),
        "bias": torch.tensor([[0.5, -20.0]]),
    }
    tensors["x"][0, 0] = 2.0
    case = Case(problem, INTERPRETER, tensors, route(problem, "1", 0, "cpu"))
    gate = 7.0  # 12.5 clamped from above
    up = -7.0  # 12 - 20 = -8 clamped from below
    expected = gate / (1 + torch.exp(torch.tensor(-1.702 * gate))).item() * (up + 1)
    assert find_kernel("moe_gate_up").reference(case).item() == pytest.approx(expected)


def test_down_weights_and_adds_a_tokens_experts() -> None:
    problem = Problem(2, 2, 32, "fp16", experts=2, top_k=2)
    tensors = {
        "x": torch.zeros(2, 32, dtype=torch.float16),
        "w": torch.zeros(2, 2, 16, dtype=torch.uint8),
        "w_scale": torch.full((2, 2, 1), 127, dtype=torch.uint8),
        "bias": torch.tensor([[1.0, 2.0], [10.0, 20.0]]),
    }
    routing = route(problem, "1,1", 0, "cpu")
    case = Case(problem, INTERPRETER, tensors, routing)
    first, second = routing.weights.double().tolist()
    expected = [[first * 1 + second * 10, first * 2 + second * 20]]
    assert find_kernel("moe_down").reference(case).tolist() == [pytest.approx(expected[0])]


@pytest.mark.parametrize("target", ["sm_90", "gfx942", "gfx1151"])
def test_fp8_data_is_stored_as_the_target_reads_it(target: str) -> None:
    found = find_target(target)
    case = find_kernel("fp8_block").make_case(Problem(3, 130, 200, "fp8"), found, "cpu", 0, "")
    storage = {"sm_90": torch.float8_e4m3fn, "gfx942": torch.float8_e4m3fnuz, "gfx1151": torch.uint8}[target]
    assert case.tensors["a"].dtype == storage
    assert case.tensors["b_scale"].shape == (2, 2)
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(3, 200, generator=generator) @ (torch.randn(130, 200, generator=generator) * 200**-0.5).T
    quantised = find_kernel("fp8_block").reference(case)
    assert ((quantised - exact).abs().max() / exact.abs().max()).item() < 0.08
