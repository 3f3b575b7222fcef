"""Grouped products with mxfp4 weights, as gpt-oss runs them: gate_up (gather, SwiGLU) and down (weighting, scatter).

The rows of the activations are sorted by expert. Every tile belongs to one expert; tables say which. In mxfp4 (OCP
Microscaling Formats 1.0) 32 e2m1 values share one e8m0 scale.
"""
# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"

from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
import triton
import triton.language as tl

from traceanalyzer.kernels.launch import Case, KernelSpec, Launch, Prepared, scheduled
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.routing import Routing, route, tile_bound, tile_tables
from traceanalyzer.kernels.space import COMMON_CONSTRAINTS, Constraint, SearchSpace
from traceanalyzer.kernels.target import Target
from traceanalyzer.kernels.tiles import grouped_tile
from traceanalyzer.kernels.traffic import MemoryTraffic, grouped_traffic

GROUP = 32
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes of e2m1, by their three low bits; bit 3 is the sign."""

TORCH_DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16}
ALPHA, LIMIT = 1.702, 7.0  # of gpt-oss's SwiGLU, as in its published model code
FINISH_BLOCK = 256  # columns of one program; chosen, not tuned
WEIGHT_BYTES = 4.25 / 8  # e2m1 with one scale byte for 32


@triton.jit
def swiglu(values, limit, alpha, block_n: tl.constexpr, rows: tl.constexpr):
    """Return ``gate * sigmoid(alpha * gate) * (up + 1)`` of interleaved columns, both clamped: [rows, block_n / 2]."""
    gate, up = tl.split(tl.reshape(values, (rows, block_n // 2, 2)))
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    return gate / (1 + tl.exp(-alpha * gate)) * (up + 1)


@triton.jit
def store_rows(
    acc, expert, rows, row_ok, part_n, bias, out, scatter, weights, n, stride_out, limit, alpha,
    down: tl.constexpr, block_m: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    """Do what ends a product: bias, then SwiGLU (gate_up) or routing weights and scatter (down), and store.

    acc [block_m, block_n] are sorted rows of one expert in columns ``part_n * block_n`` and following, summed over k.
    """
    cols = part_n * block_n + tl.arange(0, block_n)
    col_ok = cols < n
    acc += tl.load(bias + expert * n + cols, mask=col_ok, other=0.0)[None, :]
    if down:
        acc *= tl.load(weights + rows, mask=row_ok, other=0.0)[:, None]
        target = tl.load(scatter + rows, mask=row_ok, other=0).to(tl.int64)
        place = out + target[:, None] * stride_out + cols[None, :]
        tl.store(place, acc.to(out.dtype.element_ty), mask=row_ok[:, None] & col_ok[None, :])
    else:
        half = part_n * (block_n // 2) + tl.arange(0, block_n // 2)
        place = out + rows[:, None].to(tl.int64) * stride_out + half[None, :]
        active = swiglu(acc, limit, alpha, block_n, block_m)
        tl.store(place, active.to(out.dtype.element_ty), mask=row_ok[:, None] & (half < n // 2)[None, :])


@triton.jit
def moe_kernel(
    x, w, w_scale, bias, out,
    gather, scatter, weights, offsets, tile_expert, tile_row,
    n, k, tiles_m,
    stride_x, stride_we, stride_wn, stride_se, stride_sn, stride_out, stride_split,
    limit, alpha,
    down: tl.constexpr, block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, split_k: tl.constexpr,
    group_m: tl.constexpr, even_k: tl.constexpr, x_format: tl.constexpr,
):  # fmt: skip
    """One program per tile of one expert (axis 0) and part of k (axis 1).

    x [tokens, k] (down: [m, k], sorted), w [experts, n, k / 2] uint8, w_scale [experts, n, k / 32] uint8,
    bias [experts, n] float32 -> out: gate_up [m, n / 2] sorted by expert; down [m, n] at token * top_k + slot;
    with split_k > 1 the parts [split_k, m, n] float32, sorted, without bias.
    """
    tile_m, tile_n = grouped_tile(tl.program_id(0), tiles_m, tl.cdiv(n, block_n), group_m)
    split = tl.program_id(1)
    expert = tl.load(tile_expert + tile_m)
    if expert < 0:
        return
    end = tl.load(offsets + expert + 1)
    rows = tl.load(offsets + expert) + tl.load(tile_row + tile_m) + tl.arange(0, block_m)
    cols = tile_n * block_n + tl.arange(0, block_n)
    # What lies outside reads the last row or column again, which needs no mask in the loop; it is never stored.
    source = tl.minimum(rows, end - 1)
    if not down:
        source = tl.load(gather + source)
    x_rows = x + source[:, None] * stride_x
    w_cols = tl.minimum(cols, n - 1)
    w_base = w + expert.to(tl.int64) * stride_we
    s_base = w_scale + expert.to(tl.int64) * stride_se
    acc = tl.zeros((block_m, block_n), dtype=tl.float32)
    for step in range(split, tl.cdiv(k, block_k), split_k):
        ks = step * block_k + tl.arange(0, block_k)
        ks_packed = step * (block_k // 2) + tl.arange(0, block_k // 2)
        ks_scale = step * (block_k // 32) + tl.arange(0, block_k // 32)
        x_place = x_rows + ks[None, :]
        w_place = w_base + w_cols[None, :] * stride_wn + ks_packed[:, None]
        s_place = s_base + w_cols[:, None] * stride_sn + ks_scale[None, :]
        if even_k:
            x_tile, w_tile, s_tile = tl.load(x_place), tl.load(w_place), tl.load(s_place)
        else:
            x_tile = tl.load(x_place, mask=(ks < k)[None, :], other=0.0)
            w_tile = tl.load(w_place, mask=(ks_packed < k // 2)[:, None], other=0)
            s_tile = tl.load(s_place, mask=(ks_scale < k // 32)[None, :], other=0)
        acc = tl.dot_scaled(x_tile, None, x_format, w_tile, s_tile, "e2m1", acc, fast_math=True)
    row_ok = rows < end
    if split_k > 1:
        place = out + split.to(tl.int64) * stride_split + rows[:, None].to(tl.int64) * n + cols[None, :]
        tl.store(place, acc, mask=row_ok[:, None] & (cols < n)[None, :])
        return
    store_rows(
        acc, expert, rows, row_ok, tile_n, bias, out, scatter, weights, n, stride_out, limit, alpha,
        down, block_m, block_n,
    )  # fmt: skip


@triton.jit
def moe_finish_kernel(
    parts, bias, out, scatter, weights, row_expert, n, stride_split, stride_out, limit, alpha,
    down: tl.constexpr, split_k: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    """Add the parts of one sorted row (axis 0), then do what the product does at its end."""
    rows = tl.program_id(0) + tl.arange(0, 1)
    cols = tl.program_id(1) * block_n + tl.arange(0, block_n)
    places = parts + rows[:, None].to(tl.int64) * n + cols[None, :]
    acc = tl.load(places, mask=(cols < n)[None, :], other=0.0)
    for split in tl.static_range(1, split_k):
        acc += tl.load(places + split * stride_split, mask=(cols < n)[None, :], other=0.0)
    expert = tl.load(row_expert + tl.program_id(0))
    store_rows(
        acc, expert, rows, rows >= 0, tl.program_id(1), bias, out, scatter, weights, n, stride_out, limit, alpha,
        down, 1, block_n,
    )  # fmt: skip


@triton.jit
def moe_combine_kernel(rows, out, n, top_k: tl.constexpr, block_n: tl.constexpr):
    """Add a token's experts: rows [tokens * top_k, n] -> out [tokens, n]."""
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * block_n + tl.arange(0, block_n)
    ok = cols < n
    total = tl.zeros((block_n,), dtype=tl.float32)
    for slot in tl.static_range(top_k):
        total += tl.load(rows + (token * top_k + slot) * n + cols, mask=ok, other=0.0).to(tl.float32)
    tl.store(out + token * n + cols, total.to(out.dtype.element_ty), mask=ok)


def dequantize(packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the values in float64.

    Args:
        packed: ``[..., k / 2]`` uint8, the lower half of a byte is the earlier element.
        scale: ``[..., k / 32]`` uint8, the scale is ``2^(byte - 127)``.
    """
    table = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=torch.float64, device=packed.device)
    halves = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)  # [..., k]
    scales = torch.exp2(scale.double() - 127).repeat_interleave(GROUP, -1)
    return table[halves.long()] * scales[..., : halves.shape[-1]]


def random_weights(
    shape: tuple[int, int, int], generator: torch.Generator, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw packed weights ``[experts, n, k / 2]`` and scales ``[experts, n, k / 32]`` of size about ``k^-1/2``."""
    experts, n, k = shape
    packed = torch.randint(0, 256, (experts, n, k // 2), dtype=torch.uint8, generator=generator, device=device)
    middle = 127 - round(torch.log2(torch.tensor(float(k))).item() / 2) - 1  # e2m1 values have a mean square near 6
    groups = -(-k // GROUP)
    jitter = torch.randint(-1, 2, (experts, n, groups), generator=generator, device=device)
    return packed, (middle + jitter).to(torch.uint8)


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
