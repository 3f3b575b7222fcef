"""The two grouped products of a gpt-oss layer, as specs: data, launches, reference and search space."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
import triton

from traceanalyzer.kernels.launch import Case, KernelSpec, Launch, Prepared, scheduled
from traceanalyzer.kernels.moe import moe_combine_kernel, moe_finish_kernel, moe_kernel
from traceanalyzer.kernels.mxfp4 import GROUP, dequantize, random_weights
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.routing import Routing, route, tile_bound, tile_tables
from traceanalyzer.kernels.space import COMMON_CONSTRAINTS, Constraint, SearchSpace
from traceanalyzer.kernels.target import Target
from traceanalyzer.kernels.traffic import MemoryTraffic, grouped_traffic

TORCH_DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16}
ALPHA, LIMIT = 1.702, 7.0  # gpt-oss's SwiGLU
FINISH_BLOCK = 256
WEIGHT_BYTES = 4.25 / 8  # e2m1 with one scale byte for 32


def make_case(problem: Problem, target: Target, device: str, seed: int, routing: str, *, down: bool) -> Case:
    """Draw activations, weights, bias and routing."""
    table = route(problem, routing, seed, device)
    dtype = TORCH_DTYPE[problem.dtype]
    experts = problem.experts or 0
    rows = problem.m if down else problem.tokens
    if device == "meta":
        tensors = {
            "x": torch.empty(rows, problem.k, dtype=dtype, device=device),
            "w": torch.empty(experts, problem.n, problem.k // 2, dtype=torch.uint8, device=device),
            "w_scale": torch.empty(experts, problem.n, problem.k // GROUP, dtype=torch.uint8, device=device),
            "bias": torch.empty(experts, problem.n, dtype=torch.float32, device=device),
        }
        return Case(problem, target, tensors, table)
    generator = torch.Generator(device).manual_seed(seed)
    x = torch.randn(rows, problem.k, generator=generator, device=device).to(dtype)
    w, w_scale = random_weights((experts, problem.n, problem.k), generator, device)
    bias = torch.randn(experts, problem.n, generator=generator, device=device)
    return Case(problem, target, {"x": x, "w": w, "w_scale": w_scale, "bias": bias}, table)


def _routing(case: Case) -> Routing:
    if case.routing is None:
        raise ValueError("a grouped product needs a routing")
    return case.routing


def prepare(case: Case, config: Config, *, down: bool) -> Prepared:
    """Allocate results and tile tables and describe the launches: product, sum of parts, sum over experts."""
    problem, table = case.problem, _routing(case)
    x, w, w_scale = (case.tensors[name] for name in ("x", "w", "w_scale"))
    m, n, k = problem.m, problem.n, problem.k
    rows_out = torch.empty(m, n if down else n // 2, dtype=x.dtype, device=x.device)
    split = config.split_k > 1
    parts = torch.empty(config.split_k, m, n, dtype=torch.float32, device=x.device) if split else rows_out
    tile_expert, tile_row = tile_tables(problem, table, config.block_m)
    tiles_m = tile_bound(m, problem.experts or 0, config.block_m)
    product = Launch(
        moe_kernel,
        (tiles_m * triton.cdiv(n, config.block_n), config.split_k, 1),
        {
            **case.tensors,
            "out": parts,
            "gather": table.gather,
            "scatter": table.scatter,
            "weights": table.weights,
            "offsets": table.offsets,
            "tile_expert": tile_expert,
            "tile_row": tile_row,
            "n": n,
            "k": k,
            "tiles_m": tiles_m,
            "stride_x": x.stride(0),
            "stride_we": w.stride(0),
            "stride_wn": w.stride(1),
            "stride_se": w_scale.stride(0),
            "stride_sn": w_scale.stride(1),
            "stride_out": rows_out.stride(0),
            "stride_split": m * n,
            "limit": LIMIT,
            "alpha": ALPHA,
        },
        {**config.constants, "down": down, "even_k": k % config.block_k == 0, "x_format": problem.dtype},
        config.options(case.target.vendor),
    )
    finish = _finish(case, parts, rows_out, config.split_k, down) if split else None
    if not down:
        return scheduled(rows_out, product, finish)
    output = torch.empty(problem.tokens, n, dtype=x.dtype, device=x.device)
    return scheduled(output, product, finish, _combine(rows_out, output, problem))


def _finish(case: Case, parts: torch.Tensor, rows_out: torch.Tensor, split_k: int, down: bool) -> Launch:
    problem, table = case.problem, _routing(case)
    if parts.device.type == "meta":
        row_expert = torch.empty(problem.m, dtype=torch.int32, device="meta")
    else:
        place = torch.arange(problem.m, device=parts.device)
        row_expert = torch.searchsorted(table.offsets[1:].to(torch.int64), place, right=True).to(torch.int32)
    return Launch(
        moe_finish_kernel,
        (problem.m, triton.cdiv(problem.n, FINISH_BLOCK), 1),
        {
            "parts": parts,
            "bias": case.tensors["bias"],
            "out": rows_out,
            "scatter": table.scatter,
            "weights": table.weights,
            "row_expert": row_expert,
            "n": problem.n,
            "stride_split": problem.m * problem.n,
            "stride_out": rows_out.stride(0),
            "limit": LIMIT,
            "alpha": ALPHA,
        },
        {"down": down, "split_k": split_k, "block_n": FINISH_BLOCK},
        {"num_warps": 4, "num_stages": 1},
    )


def _combine(rows: torch.Tensor, output: torch.Tensor, problem: Problem) -> Launch:
    return Launch(
        moe_combine_kernel,
        (problem.tokens, triton.cdiv(problem.n, FINISH_BLOCK), 1),
        {"rows": rows, "out": output, "n": problem.n},
        {"top_k": problem.top_k, "block_n": FINISH_BLOCK},
        {"num_warps": 4, "num_stages": 1},
    )


def reference(case: Case, *, down: bool) -> torch.Tensor:
    """Return the layer's half in float64, one expert after the other."""
    problem, table = case.problem, _routing(case)
    x, bias = case.tensors["x"].double(), case.tensors["bias"].double()
    rows = x if down else x[table.gather.long()]
    product = torch.zeros(problem.m, problem.n, dtype=torch.float64, device=x.device)
    ends = table.offsets.tolist()
    for expert, (start, end) in enumerate(pairwise(ends)):
        if end > start:
            w = dequantize(case.tensors["w"][expert], case.tensors["w_scale"][expert])
            product[start:end] = rows[start:end] @ w.T + bias[expert]
    if not down:
        gate, up = product[:, 0::2].clamp(max=LIMIT), product[:, 1::2].clamp(-LIMIT, LIMIT)
        return gate * torch.sigmoid(ALPHA * gate) * (up + 1)
    scattered = torch.empty_like(product)
    scattered[table.scatter.long()] = product * table.weights.double()[:, None]
    return scattered.reshape(problem.tokens, -1, problem.n).sum(1)


def traffic(problem: Problem, config: Config) -> MemoryTraffic:
    """Return what the product moves under uniform routing; weights are 4.25 bits."""
    return grouped_traffic(problem, config, WEIGHT_BYTES)


SPACE = SearchSpace(
    axes={
        "block_m": (16, 32, 64, 128),
        "block_n": (16, 32, 64, 128, 256),
        "block_k": (64, 128, 256),
        "split_k": (1, 2, 4),
        "group_m": (1, 8),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2, 3, 4),
    },
    constraints=(
        *COMMON_CONSTRAINTS,
        Constraint("block_k is smaller than two mxfp4 groups", lambda p, c, t: c.block_k >= 2 * GROUP, required=True),
    ),
    shapes={},
)


def _spec(name: str, summary: str, n: int, *, down: bool) -> KernelSpec:
    shapes = {
        "gpt-oss-20b": Problem(4, n, 2880, experts=32, top_k=4),
        "gpt-oss-120b": Problem(4, n, 2880, experts=128, top_k=4),
    }
    return KernelSpec(
        name=name,
        summary=summary,
        dtypes=("bf16", "fp16"),
        interpreter_dtype="fp16",
        space=replace(SPACE, shapes=shapes),
        make_case=partial(make_case, down=down),
        prepare=partial(prepare, down=down),
        reference=partial(reference, down=down),
        traffic=traffic,
        tolerance=2e-2,
        grouped=True,
        k_step=GROUP,
        n_step=2,
    )


GATE_UP = _spec("moe_gate_up", "grouped product with mxfp4 weights, gather and fused SwiGLU", 5760, down=False)
DOWN = _spec(
    "moe_down",
    "grouped product with mxfp4 weights, routing weights, scatter and sum over a token's experts",
    2880,
    down=True,
)
