"""Which numbers of rows to tune: those that were seen, and both sides of where a library's own choice flips."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.commands.tune.plan.result import RowFlip
from traceanalyzer.names import KernelName

FEW_ROWS_AMD = 16
"""triton_kernels 3.5.0 on AMD takes 2 warps for at most this many rows and 8 above: its opt_flags.py."""

WARPS_AMD = ("triton_kernels 3.5.0 takes 2 warps up to 16 rows", "triton_kernels 3.5.0 takes 8 warps above 16 rows")
DEFAULT_TILE = (
    "without a tuned file, vLLM's default takes its small tile up to as many tokens as experts",
    "without a tuned file, vLLM's default takes its large tile above as many tokens as experts",
)

MOST_FLIP_TOKENS = 256
"""Flips beyond this batch size are not worth a measurement of decode steps. Chosen, not fitted."""


def flips(kernel: KernelName, vendor: str | None, experts: int | None, top_k: int | None) -> tuple[RowFlip, ...]:
    """Return both sides of every number of rows at which a library starts to take another tile or number of warps.

    Rows come in steps of ``top_k``, so that the sides are the nearest numbers that a batch can have. Experts are those
    of the whole model.
    """
    step = top_k or 1
    if kernel.scheme == "triton_kernels" and vendor == "amd":
        limit, (below, above) = FEW_ROWS_AMD // step, WARPS_AMD
    elif is_fused_moe(kernel) and experts is not None and experts < MOST_FLIP_TOKENS:
        limit, (below, above) = experts, DEFAULT_TILE
    else:
        return ()
    return tuple(RowFlip(m=tokens * step, why=why) for tokens, why in ((limit, below), (limit + 1, above)) if tokens)


def is_fused_moe(kernel: KernelName) -> bool:
    """Whether a kernel is vLLM's (or SGLang's) fused_moe, whose one configuration serves gate_up and down alike."""
    return kernel.scheme == "triton" and kernel.family == "moe_gemm"


def rows_to_tune(seen: Sequence[int], flip: Sequence[RowFlip]) -> tuple[int, ...]:
    """Return the rows seen, smallest first, then those of flips that were not seen."""
    return tuple(dict.fromkeys((*sorted(seen), *(one.m for one in flip))))
