"""Matrix-vector and skinny products without a tile in the name: `wvSplitK_hf_sml_<...>`, `LLGemm1_kernel<...>`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register


@register(
    "gemv",
    order=105,
    contains=("wvsplitk", "wv_splitk", "llgemm1", "llmm1", "gemv"),
    pattern=r"(?i)wvSplitK|wv_splitk|LLGemm1|LLMM1|gemv",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The template's numbers are threads, rows and unrolling, not a tile."""
    if not re.search(r"(?i)wv_?splitk|llgemm1|llmm1|gemv", view.function):
        return None
    rocm = "gemv" not in view.function.lower()
    return kernel(view, "gemv", "gemm", library="vLLM" if rocm else None)
