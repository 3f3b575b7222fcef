"""Pieces that every kernel shares, as Triton functions."""
# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def grouped_tile(pid, tiles_m, tiles_n, group_m: tl.constexpr):
    """Map a program to its tile: group_m row tiles are visited before the next column tile."""
    per_group = group_m * tiles_n
    first_m = (pid // per_group) * group_m
    size_m = tl.minimum(tiles_m - first_m, group_m)
    within = pid % per_group
    return first_m + within % size_m, within // size_m


@triton.jit
def load_step(a_base, b_base, rows, cols, row_ok, col_ok, ks, k, stride_a, stride_b, even_k: tl.constexpr):
    """Load what one step of ``a @ b^T`` multiplies: a [rows, ks] and b [ks, cols]; what lies outside is 0."""
    a_mask = row_ok[:, None]
    b_mask = col_ok[None, :]
    if not even_k:
        a_mask &= (ks < k)[None, :]
        b_mask &= (ks < k)[:, None]
    a_tile = tl.load(a_base + rows[:, None] * stride_a + ks[None, :], mask=a_mask, other=0.0)
    b_tile = tl.load(b_base + cols[None, :] * stride_b + ks[:, None], mask=b_mask, other=0.0)
    return a_tile, b_tile


@triton.jit
def store_tile(
    c, acc, tile_m, tile_n, split, rows, cols, row_ok, col_ok, stride_c, stride_split,
    block_m: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    """Store a tile of part ``split`` of c [split_k, m, n] in c's type; what lies outside is left out."""
    c_base = c + split.to(tl.int64) * stride_split + (tile_m * block_m).to(tl.int64) * stride_c + tile_n * block_n
    c_mask = row_ok[:, None] & col_ok[None, :]
    tl.store(c_base + rows[:, None] * stride_c + cols[None, :], acc.to(c.dtype.element_ty), mask=c_mask)


@triton.jit
def sum_splits_kernel(partial, output, rows, n, stride_split, stride_out, split_k: tl.constexpr, block_n: tl.constexpr):
    """Add the parts of a product that was split over k: partial [split_k, rows, n] float32 -> output [rows, n]."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * block_n + tl.arange(0, block_n)
    ok = cols < n
    total = tl.zeros((block_n,), dtype=tl.float32)
    place = partial + row.to(tl.int64) * n + cols
    for split in tl.static_range(split_k):
        total += tl.load(place + split * stride_split, mask=ok, other=0.0)
    tl.store(output + row.to(tl.int64) * stride_out + cols, total.to(output.dtype.element_ty), mask=ok)
