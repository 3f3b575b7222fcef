"""A Triton kernel that spills as soon as it may not have many registers."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product_kernel(a, b, c, k_size, size: tl.constexpr):
    """Multiply one square tile a step."""
    at = tl.arange(0, size)
    total = tl.zeros((size, size), dtype=tl.float32)
    for k in range(0, k_size, size):
        left = tl.load(a + at[:, None] * k_size + (k + at)[None, :])
        right = tl.load(b + (k + at)[:, None] * size + at[None, :])
        total += tl.dot(left, right)
    tl.store(c + at[:, None] * size + at[None, :], total)
