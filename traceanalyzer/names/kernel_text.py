"""Tile and element types of a kernel as text."""

from __future__ import annotations

from traceanalyzer.names.kernel_name import KernelName


def dtypes_text(kernel: KernelName) -> str | None:
    """Write element types as ``output<-activation x weight``, unknown ones as ``?``; ``None`` where none is known."""
    types = (kernel.dtypes.output, kernel.dtypes.activation, kernel.dtypes.weight)
    if types == (None, None, None):
        return None
    output, activation, weight = ("?" if part is None else part for part in types)
    return f"{output}<-{activation}x{weight}"


def tile_text(kernel: KernelName) -> str | None:
    """Write a kernel's tile as ``MxNxK``; ``None`` where its name has none."""
    if kernel.tile is None:
        return None
    return "x".join("?" if part is None else str(part) for part in kernel.tile)
