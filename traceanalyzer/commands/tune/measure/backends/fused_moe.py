"""vLLM's Triton ``fused_experts`` with bf16 or fp16 weights: gate_up, SwiGLU and down in one operation.

The problem names the gate_up product: n = 2 x the intermediate size per rank, k = the hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from traceanalyzer.commands.tune.measure.measuring import MeasuringTask, Operation, Session, gpu_session
from traceanalyzer.commands.tune.tile_config import TileConfig, to_vllm
from traceanalyzer.kernels.problem import ELEMENT_BYTES, Config, Problem
from traceanalyzer.kernels.routing import draw_experts
from traceanalyzer.kernels.space import COMMON_CONSTRAINTS, SearchSpace
from traceanalyzer.kernels.traffic import MemoryTraffic, grouped_traffic

if TYPE_CHECKING:
    import torch

KERNELS = ("fused_moe",)
VLLM = "vllm.model_executor.layers.fused_moe"
TOLERANCE = 3e-2
"""Largest error, relative: two products with a rounding to 16 bits between them. Chosen, not fitted."""

SPACE = SearchSpace(
    axes={
        "block_m": (16, 32, 64, 128),
        "block_n": (32, 64, 128, 256),
        "block_k": (64, 128, 256),
        "group_m": (1, 16, 32, 64),
        "num_warps": (4, 8),
        "num_stages": (2, 3, 4, 5),
    },
    constraints=COMMON_CONSTRAINTS,
    shapes={
        "mixtral-8x7b": Problem(2, 28672, 4096, experts=8, top_k=2),
        "qwen3-30b-a3b": Problem(8, 1536, 2048, experts=128, top_k=8),
    },
)


def open_session(device: str) -> Session:
    """Open vLLM's fused experts on the local GPU.

    Raises:
        RuntimeError: vLLM is not installed, there is no GPU, or another device is asked for.
    """
    if device != "gpu":
        raise RuntimeError("vLLM's fused_moe runs on a GPU only")
    try:
        import_module(VLLM)
    except ImportError:
        raise RuntimeError("vLLM is not installed") from None
    return gpu_session(open_operation, "vllm")


def traffic(problem: Problem, config: Config) -> MemoryTraffic:
    """Return what the gate_up product moves, the larger of the two."""
    return grouped_traffic(problem, config, ELEMENT_BYTES[problem.dtype])


def open_operation(task: MeasuringTask) -> Operation:
    """Draw activations, weights and routing."""
    import torch

    vllm = import_module(VLLM)

    problem = task.problem
    if task.kernel not in KERNELS or problem.experts is None:
        raise RuntimeError("vLLM's fused_moe is measured as kernel fused_moe with experts and top_k")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[problem.dtype]
    draw = torch.Generator("cuda").manual_seed(task.seed)
    half = problem.n // 2
    x = torch.randn(problem.tokens, problem.k, generator=draw, device="cuda").to(dtype)
    w1 = torch.empty(problem.experts, problem.n, problem.k, dtype=dtype, device="cuda")
    w2 = torch.empty(problem.experts, problem.k, half, dtype=dtype, device="cuda")
    w1.normal_(0, problem.k**-0.5, generator=draw)
    w2.normal_(0, half**-0.5, generator=draw)
    ids = draw_experts(problem, task.routing, task.seed).to("cuda", torch.int32)
    weights = torch.softmax(torch.randn(ids.shape, generator=draw, device="cuda"), -1)

    def prepare(config: Config) -> tuple[Callable[[], object], Callable[[], torch.Tensor]]:
        keys, results = to_vllm(TileConfig(config.to_dict())), list[torch.Tensor]()

        def run() -> None:
            with vllm.override_config(keys):
                results[:] = [vllm.fused_experts(x, w1, w2, weights, ids)]

        return run, lambda: results[0]

    return Operation(prepare, lambda: _reference(x, w1, w2, weights, ids), TOLERANCE)


def _reference(
    x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, weights: torch.Tensor, ids: torch.Tensor
) -> torch.Tensor:
    """Return the layer in float64, one expert after the other."""
    import torch

    total = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for expert in sorted(set(ids.flatten().tolist())):
        token, slot = torch.nonzero(ids == expert, as_tuple=True)
        gate, up = (x[token].double() @ w1[expert].double().T).chunk(2, -1)
        out = (torch.nn.functional.silu(gate) * up) @ w2[expert].double().T
        total.index_add_(0, token, out * weights[token, slot].double()[:, None])
    return total
