"""Dense product ``c[m, n] = a[m, k] @ b[n, k]^T`` in bf16, fp16 or fp32, optionally split over k."""
# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from traceanalyzer.kernels.launch import Case, KernelSpec, Launch, Prepared, scheduled
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.space import COMMON_CONSTRAINTS, SearchSpace
from traceanalyzer.kernels.target import Target
from traceanalyzer.kernels.tiles import grouped_tile, load_step, store_tile, sum_splits_kernel
from traceanalyzer.kernels.traffic import dense_traffic

TORCH_DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
SUM_BLOCK = 256
"""Columns that one program sums; chosen, not tuned: the sum is small beside the product."""


@triton.jit
def dense_kernel(
    a, b, c, m, n, k,
    stride_a, stride_b, stride_c, stride_split,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, split_k: tl.constexpr,
    group_m: tl.constexpr, even_k: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """One program per tile (axis 0) and part of k (axis 1).

    a [m, k], b [n, k] -> c [m, n], or with split_k > 1 [split_k, m, n] float32.
    """
    tile_m, tile_n = grouped_tile(tl.program_id(0), tl.cdiv(m, block_m), tl.cdiv(n, block_n), group_m)
    split = tl.program_id(1)
    rows = tl.arange(0, block_m)
    cols = tl.arange(0, block_n)
    row_ok = tile_m * block_m + rows < m
    col_ok = tile_n * block_n + cols < n
    a_base = a + (tile_m * block_m).to(tl.int64) * stride_a
    b_base = b + (tile_n * block_n).to(tl.int64) * stride_b
    acc = tl.zeros((block_m, block_n), dtype=tl.float32)
    for step in range(split, tl.cdiv(k, block_k), split_k):
        ks = step * block_k + tl.arange(0, block_k)
        a_tile, b_tile = load_step(a_base, b_base, rows, cols, row_ok, col_ok, ks, k, stride_a, stride_b, even_k)
        acc = tl.dot(a_tile, b_tile, acc, input_precision=precision)
    store_tile(c, acc, tile_m, tile_n, split, rows, cols, row_ok, col_ok, stride_c, stride_split, block_m, block_n)


def make_case(problem: Problem, target: Target, device: str, seed: int, routing: str) -> Case:
    """Draw activations and weights from the normal distribution, weights scaled by ``k^-1/2``."""
    del routing
    dtype = TORCH_DTYPE[problem.dtype]
    if device == "meta":
        shapes = {"a": (problem.m, problem.k), "b": (problem.n, problem.k)}
        return Case(problem, target, {name: torch.empty(s, dtype=dtype, device="meta") for name, s in shapes.items()})
    generator = torch.Generator(device).manual_seed(seed)
    a = torch.randn(problem.m, problem.k, generator=generator, device=device)
    b = torch.randn(problem.n, problem.k, generator=generator, device=device) * problem.k**-0.5
    return Case(problem, target, {"a": a.to(dtype), "b": b.to(dtype)})


def prepare(case: Case, config: Config) -> Prepared:
    """Describe the launches of the product."""
    a, b = case.tensors["a"], case.tensors["b"]
    strides = {"stride_a": a.stride(0), "stride_b": b.stride(0)}
    return dense_launches(dense_kernel, case, config, a.dtype, strides, {"precision": "ieee"})


def dense_launches(
    kernel: Any,
    case: Case,
    config: Config,
    dtype: torch.dtype,
    strides: Mapping[str, int],
    constants: Mapping[str, Any],
) -> Prepared:
    """Allocate the result (and the parts, with split_k) and describe the launches of a dense product.

    Args:
        case: its tensors go to the kernel under their names.
        constants: the kernel's own constants, besides the configuration's.
    """
    m, n, k = case.problem.m, case.problem.n, case.problem.k
    device = case.tensors["a"].device
    output = torch.empty(m, n, dtype=dtype, device=device)
    split = config.split_k > 1
    parts = torch.empty(config.split_k, m, n, dtype=torch.float32, device=device) if split else output
    product = Launch(
        kernel,
        (triton.cdiv(m, config.block_m) * triton.cdiv(n, config.block_n), config.split_k, 1),
        {**case.tensors, "c": parts, "m": m, "n": n, "k": k, **strides, "stride_c": n, "stride_split": m * n},
        {**config.constants, "even_k": k % config.block_k == 0, **constants},
        config.options(case.target.vendor),
    )
    return scheduled(output, product, sum_splits(parts, output, config.split_k) if split else None)


def sum_splits(parts: torch.Tensor, output: torch.Tensor, split_k: int) -> Launch:
    """Return the launch that adds ``parts [split_k, rows, n]`` into ``output [rows, n]``."""
    rows, n = output.shape
    return Launch(
        sum_splits_kernel,
        (rows, triton.cdiv(n, SUM_BLOCK), 1),
        {
            "partial": parts,
            "output": output,
            "rows": rows,
            "n": n,
            "stride_split": rows * n,
            "stride_out": output.stride(0),
        },
        {"split_k": split_k, "block_n": SUM_BLOCK},
        {"num_warps": 4, "num_stages": 1},
    )


def reference(case: Case) -> torch.Tensor:
    """Return ``a @ b^T`` in float64."""
    return case.tensors["a"].double() @ case.tensors["b"].double().T


SPACE = SearchSpace(
    axes={
        "block_m": (16, 32, 64, 128),
        "block_n": (16, 32, 64, 128, 256),
        "block_k": (32, 64, 128, 256),
        "split_k": (1, 2, 4, 8),
        "group_m": (1, 8),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2, 3, 4, 5),
    },
    constraints=COMMON_CONSTRAINTS,
    shapes={
        "llama-3.1-8b-qkv": Problem(1, 6144, 4096),
        "llama-3.1-8b-gate-up": Problem(1, 28672, 4096),
        "llama-3.1-8b-down": Problem(1, 4096, 14336),
        "gpt-oss-20b-qkv": Problem(1, 5120, 2880),
        "gpt-oss-20b-lm-head": Problem(1, 201088, 2880),
    },
)

SPEC = KernelSpec(
    name="dense",
    summary="dense product in bf16, fp16 or fp32, with split-k",
    dtypes=("bf16", "fp16", "fp32"),
    interpreter_dtype="fp16",
    space=SPACE,
    make_case=make_case,
    prepare=prepare,
    reference=reference,
    traffic=dense_traffic,
    tolerance=2e-2,
)
