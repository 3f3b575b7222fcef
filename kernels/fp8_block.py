"""fp8 product with block scales, as DeepSeek and Qwen store them: 1x128 on activations, 128x128 on weights."""
# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"

import torch
import triton
import triton.language as tl

from traceanalyzer.kernels.dense import SPACE as DENSE_SPACE
from traceanalyzer.kernels.dense import dense_launches
from traceanalyzer.kernels.launch import Case, KernelSpec, Prepared
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.space import COMMON_CONSTRAINTS, Constraint, SearchSpace
from traceanalyzer.kernels.target import Target
from traceanalyzer.kernels.tiles import grouped_tile, load_step, store_tile
from traceanalyzer.kernels.traffic import dense_traffic

GROUP = 128
STORAGE = {"e4m3fn": torch.float8_e4m3fn, "e4m3fnuz": torch.float8_e4m3fnuz, "bytes": torch.uint8}
LARGEST = 240.0  # of e4m3fnuz, the smaller of the two ranges


@triton.jit
def e4m3_bits_to_fp16(bits):
    """Return the values of e4m3fn bytes; NaN (0x7f, 0xff) is read as 480, which no checkpoint holds."""
    wide = bits.to(tl.uint16)
    moved = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)  # exponent bias 15 instead of 7: a factor of 2^8
    return moved.to(tl.float16, bitcast=True) * 256.0


@triton.jit
def fp8_block_kernel(
    a, b, a_scale, b_scale, c, m, n, k,
    stride_a, stride_b, stride_as, stride_bs, stride_c, stride_split,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, split_k: tl.constexpr,
    group_m: tl.constexpr, even_k: tl.constexpr, scale_group: tl.constexpr, from_bytes: tl.constexpr,
):  # fmt: skip
    """One program per tile and part of k.

    a [m, k], b [n, k] fp8 (or bytes), a_scale [m, k / 128], b_scale [n / 128, k / 128] float32
    -> c [m, n], or [split_k, m, n] float32.
    """
    tile_m, tile_n = grouped_tile(tl.program_id(0), tl.cdiv(m, block_m), tl.cdiv(n, block_n), group_m)
    split = tl.program_id(1)
    rows = tl.arange(0, block_m)
    cols = tl.arange(0, block_n)
    row_ok = tile_m * block_m + rows < m
    col_ok = tile_n * block_n + cols < n
    a_base = a + (tile_m * block_m).to(tl.int64) * stride_a
    b_base = b + (tile_n * block_n).to(tl.int64) * stride_b
    a_scales = a_scale + (tile_m * block_m + rows) * stride_as
    b_scales = b_scale + (tile_n * block_n + cols) // scale_group * stride_bs
    acc = tl.zeros((block_m, block_n), dtype=tl.float32)
    for step in range(split, tl.cdiv(k, block_k), split_k):
        ks = step * block_k + tl.arange(0, block_k)
        group = step * block_k // scale_group
        a_tile, b_tile = load_step(a_base, b_base, rows, cols, row_ok, col_ok, ks, k, stride_a, stride_b, even_k)
        if from_bytes:
            a_tile = e4m3_bits_to_fp16(a_tile)
            b_tile = e4m3_bits_to_fp16(b_tile)
        a_factor = tl.load(a_scales + group, mask=row_ok, other=0.0)
        b_factor = tl.load(b_scales + group, mask=col_ok, other=0.0)
        acc += tl.dot(a_tile, b_tile) * a_factor[:, None] * b_factor[None, :]
    store_tile(c, acc, tile_m, tile_n, split, rows, cols, row_ok, col_ok, stride_c, stride_split, block_m, block_n)


def make_case(problem: Problem, target: Target, device: str, seed: int, routing: str) -> Case:
    """Draw activations and weights, and quantise them block by block."""
    del routing
    m, n, k = problem.m, problem.n, problem.k
    storage = STORAGE[target.fp8_storage]
    groups = -(-k // GROUP)
    if device == "meta":
        tensors = {
            "a": torch.empty(m, k, dtype=storage, device=device),
            "b": torch.empty(n, k, dtype=storage, device=device),
            "a_scale": torch.empty(m, groups, dtype=torch.float32, device=device),
            "b_scale": torch.empty(-(-n // GROUP), groups, dtype=torch.float32, device=device),
        }
        return Case(problem, target, tensors)
    generator = torch.Generator(device).manual_seed(seed)
    a, a_scale = _quantize(torch.randn(m, k, generator=generator, device=device), 1, storage)
    b, b_scale = _quantize(torch.randn(n, k, generator=generator, device=device) * k**-0.5, GROUP, storage)
    return Case(problem, target, {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale})


def _quantize(values: torch.Tensor, rows: int, storage: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise blocks of ``rows`` x 128: return fp8 of the same shape and the scales, one per block."""
    m, k = values.shape
    padded = torch.nn.functional.pad(values, (0, -k % GROUP, 0, -m % rows))
    blocks = padded.reshape(padded.shape[0] // rows, rows, -1, GROUP)
    scale = blocks.abs().amax((1, 3)).clamp(min=1e-12) / LARGEST
    scaled = (blocks / scale[:, None, :, None]).reshape(padded.shape)[:m, :k].contiguous()
    if storage == torch.uint8:
        return scaled.to(torch.float8_e4m3fn).view(torch.uint8), scale
    return scaled.to(storage), scale


def _values(stored: torch.Tensor) -> torch.Tensor:
    return (stored.view(torch.float8_e4m3fn) if stored.dtype == torch.uint8 else stored).to(torch.float64)


def prepare(case: Case, config: Config) -> Prepared:
    """Describe the launches of the product; the result is bf16, in the interpreter float16."""
    a, b, a_scale, b_scale = (case.tensors[name] for name in ("a", "b", "a_scale", "b_scale"))
    dtype = torch.float16 if case.target.vendor == "none" else torch.bfloat16
    strides = {
        "stride_a": a.stride(0),
        "stride_b": b.stride(0),
        "stride_as": a_scale.stride(0),
        "stride_bs": b_scale.stride(0),
    }
    constants = {"scale_group": GROUP, "from_bytes": a.dtype == torch.uint8}
    return dense_launches(fp8_block_kernel, case, config, dtype, strides, constants)


def reference(case: Case) -> torch.Tensor:
    """Return the product of the dequantised matrices in float64."""
    m, n, k = case.problem.m, case.problem.n, case.problem.k
    a_scale = case.tensors["a_scale"].double().repeat_interleave(GROUP, 1)[:m, :k]
    b_scale = case.tensors["b_scale"].double().repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)[:n, :k]
    return (_values(case.tensors["a"]) * a_scale) @ (_values(case.tensors["b"]) * b_scale).T


SPACE = SearchSpace(
    axes={**DENSE_SPACE.axes, "block_n": (16, 32, 64, 128), "block_k": (32, 64, 128)},
    constraints=(
        *COMMON_CONSTRAINTS,
        Constraint("block_k crosses a group of scales (128)", lambda p, c, t: GROUP % c.block_k == 0, required=True),
        Constraint("fp8 matrix units reduce at least 32 elements", lambda p, c, t: c.block_k >= 32, required=True),
    ),
    shapes={
        "deepseek-v3-q-b": Problem(1, 24576, 1536, dtype="fp8"),
        "deepseek-v3-o": Problem(1, 7168, 16384, dtype="fp8"),
        "qwen3-8b-gate-up": Problem(1, 24576, 4096, dtype="fp8"),
    },
)

SPEC = KernelSpec(
    name="fp8_block",
    summary="fp8 product with block scales (1x128 on activations, 128x128 on weights)",
    dtypes=("fp8",),
    interpreter_dtype="fp8",
    space=SPACE,
    make_case=make_case,
    prepare=prepare,
    reference=reference,
    traffic=dense_traffic,  # the scales are under 1 %
    tolerance=2e-2,
)
