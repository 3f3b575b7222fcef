"""Triton kernels to tune: for each a kernel, a torch reference, its search space and shapes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceanalyzer.kernels.launch import KernelSpec

HOME = {
    "dense": ("dense", "SPEC"),
    "fp8_block": ("fp8_block", "SPEC"),
    "moe_gate_up": ("moe_mxfp4", "GATE_UP"),
    "moe_down": ("moe_mxfp4", "DOWN"),
}
"""Kernel name -> module and attribute; imported on use, because Triton is slow to import and absent on some systems."""


def find_kernel(name: str) -> KernelSpec:
    """Return a kernel by name.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in HOME:
        raise ValueError(f"unknown kernel {name!r} (known: {', '.join(HOME)})")
    module, attribute = HOME[name]
    spec: KernelSpec = getattr(import_module(f"{__name__}.{module}"), attribute)
    return spec
