"""TensorRT: loops that its compiler fuses (`__myl_CastMulMeanAddSqrtDivMul_0x...`), attention, changes of layout."""

from __future__ import annotations

import re

from traceanalyzer.names.build import kernel
from traceanalyzer.names.cpp_text import NameView, words
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_MOVES = frozenset(
    {"bb", "cast", "conc", "concat", "cond", "copy", "expa", "fill", "gath", "move", "myl", "pad", "repl", "resh"}
    | {"reshape", "slic", "squ", "tmp", "tran", "transpose"}
)
"""Abbreviations of operations that compute nothing."""


@register(
    "tensorrt",
    order=67,
    prefixes=("__myl", "_gemm_mha", "void genericreformat", "genericreformat", "void copyvectorizedkernel"),
    pattern=r"(?i)^(?:__myl\w*|_gemm_mha\w*|(?:void )?genericReformat::|(?:void )?copyVectorizedKernel)",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName:
    """The name lists the fused operations; a mean and a root among them make a norm."""
    ops = set(words(view.function.partition("_0x")[0]))
    lower = view.lower
    if "mha" in ops:
        kind = "attention"
    elif lower.startswith("__myl"):
        kind = _kind(ops)
    else:
        kind = "memory"
    return kernel(view, "tensorrt", kind, library="TensorRT")


def _kind(ops: set[str]) -> str:
    signs = (
        ("gemm", not ops.isdisjoint({"fc", "gemm", "mat", "matmul"})),
        ("convolution", not ops.isdisjoint({"conv", "deconv"})),
        ("norm", "mean" in ops and not ops.isdisjoint({"sqrt", "rsqrt", "rsq"})),
        ("softmax", {"max", "exp", "sum"} <= ops or "softmax" in ops),
        ("sort", not ops.isdisjoint({"topk", "top", "sort"})),
        ("activation", not ops.isdisjoint({"silu", "gelu", "sigm", "erf", "relu"})),
        ("reduction", not ops.isdisjoint({"mean", "sum", "max", "min", "arg"})),
        ("memory", not ops - _MOVES),
    )
    return next((kind for kind, fits in signs if fits), "elementwise")
