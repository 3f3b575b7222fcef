"""PyTorch's own CUDA and HIP kernels: `void at::native::vectorized_elementwise_kernel<4, ...>(...)`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_rule, first_mark, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

_LOOPS = (
    "elementwise_kernel",
    "elementwise_kernel_with_index",
    "reduce_kernel",
    "unrolled_",
    "vectorized_elementwise",
)
# Normal and uniform draws fill weights or latents, Bernoulli draws drop out. A sampler of tokens draws from an
# exponential distribution; where it draws a uniform number its place has to tell.
_DRAWS: tuple[tuple[str, str], ...] = (
    ("exponential", "sampling"),
    ("_and_transform", "random"),
    ("bernoulli", "random"),
)
_COPIES = ("copyfunctor", "zerofunctor", "native::copy<", "identity")
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
    *_DRAWS,
    ("distribution", "sampling"),
    ("float8", "memory"),
)
_PRIMITIVE_LIBRARIES = ("rocprim", "cub::", "thrust::", "at_cuda_detail")
# Likewise for a kernel of rocPRIM, CUB or Thrust.
_PRIMITIVES: tuple[tuple[str, str], ...] = (
    ("radix", "sort"),
    ("onesweep", "sort"),
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
_SOFTMAX = ("softmax", "cunn_softmax", "cunn_spatialsoftmax", "persistent_softmax")


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
def read(view: NameView, _match: re.Match[str]) -> KernelName:
    """The loop's body decides: a copy, a fill, an activation, a reduction, arithmetic."""
    function = view.function.rsplit("::", 1)[-1].lower()
    head = view.lower[:6000]
    kind, library = _own_kind(function, head), "PyTorch"
    if kind is None and any(mark in head for mark in _PRIMITIVE_LIBRARIES):
        kind = first_mark(head, _PRIMITIVES) or "unknown"
        library = "rocPRIM" if "rocprim" in head else "CUB"
    if kind is None and function.startswith(_SOFTMAX):
        kind = "softmax"
    if kind is None and "embedding" in function:
        kind = "embedding"
    if kind is not None:
        return kernel(view, "aten", kind, library=library)
    return by_rule(view, "aten", classify(view.identifier), library=library)


def _own_kind(function: str, head: str) -> str | None:
    """Return the kind of a random draw or of a loop, by its body."""
    if function.startswith(("distribution_", "exponential")):
        return first_mark(head, _DRAWS) or "sampling"
    if function.startswith("multi_tensor_apply"):
        return "memory" if any(mark in head for mark in _COPIES) else "optimizer"
    if not any(loop in function for loop in _LOOPS):
        return None
    return first_mark(head, _BODIES) or ("reduction" if "reduce_kernel" in function else "elementwise")
