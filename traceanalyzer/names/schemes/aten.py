"""PyTorch's own CUDA and HIP kernels: `void at::native::vectorized_elementwise_kernel<4, ...>(...)`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_LOOPS = (
    "elementwise_kernel",
    "elementwise_kernel_with_index",
    "multi_tensor_apply_kernel",
    "reduce_kernel",
    "unrolled_",
    "vectorized_elementwise",
)
# In order: the first text found in the template arguments of a loop tells what the loop computes.
_BODIES: tuple[tuple[str, str], ...] = (
    ("argmax", "sampling"),
    ("argmin", "reduction"),
    ("fillfunctor", "memory"),
    ("copy_kernel", "memory"),
    ("copyfunctor", "memory"),
    ("unaryopfunctor", "memory"),
    ("identity", "memory"),
    ("silu", "activation"),
    ("gelu", "activation"),
    ("relu", "activation"),
    ("launch_clamp_scalar", "elementwise"),
    ("index_put", "index"),
    ("index_kernel", "index"),
    ("index_elementwise", "index"),
    ("gpu_index", "index"),
    ("exponential", "sampling"),
    ("distribution", "sampling"),
    ("float8", "memory"),
)


@register(
    "aten",
    order=60,
    contains=(
        "at::native",
        "at_cuda_detail",
        "elementwise_kernel_with_index",
        "rocprim",
        "cub::",
        "thrust::",
        "6native",
    ),
    pattern="",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The loop's body decides: a copy, a fill, an activation, a reduction, arithmetic."""
    function = view.function.rsplit("::", 1)[-1].lower()
    head = view.lower[:6000]
    library = "PyTorch"
    if function.startswith(("distribution_", "exponential")):
        return kernel(view, "aten", "sampling", library=library)
    if any(loop in function for loop in _LOOPS):
        kind = next((kind for mark, kind in _BODIES if mark in head), None)
        if kind is None:
            kind = "reduction" if "reduce_kernel" in function else "elementwise"
        return kernel(view, "aten", kind, library=library)
    if "rocprim" in head or "cub::" in head or "thrust::" in head or "at_cuda_detail" in head:
        library = "rocPRIM" if "rocprim" in head else "CUB"
        return kernel(view, "aten", _primitive(head), library=library)
    if function.startswith(("softmax", "cunn_softmax", "cunn_spatialsoftmax", "persistent_softmax")):
        return kernel(view, "aten", "reduction", library=library)
    if "embedding" in function:
        return kernel(view, "aten", "embedding", library=library)
    reading = by_words(view, "aten", library=library)
    return reading if reading is not None else kernel(view, "aten", "unknown", library=library)


def _primitive(head: str) -> str:
    """Kind of a rocPRIM, CUB or Thrust kernel."""
    marks = (
        ("radix", "sort"),
        ("onesweep", "sort"),
        ("merge_sort", "sort"),
        ("mergesort", "sort"),
        ("sort", "sort"),
        ("scan", "scan"),
        ("reduce", "reduction"),
        ("select", "index"),
        ("partition", "index"),
        ("unique", "index"),
        ("histogram", "reduction"),
        ("transform", "elementwise"),
        ("for_each", "elementwise"),
        ("parallel_for", "elementwise"),
        ("copy", "memory"),
    )
    return next((kind for mark, kind in marks if mark in head), "unknown")
