"""Grouped product with mxfp4 weights, as gpt-oss runs it: gate_up (gather, SwiGLU) and down (weighting, scatter).

The rows of the activations are sorted by expert. Every tile belongs to one expert; tables say which.
"""
# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"

import triton
import triton.language as tl

from traceanalyzer.kernels.tiles import grouped_tile


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
    """One program a tile of one expert (axis 0) and part of k (axis 1).

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
