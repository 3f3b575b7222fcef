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
