"""Marlin (4 and 8 bit weights): `void marlin::Marlin<...>`, `void marlin_moe_wna16::Marlin<...>`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_NO_TILE = "The template's numbers count blocks of 16 and their order changed between versions: no tile is read."


@register("marlin", order=100, contains=("marlin",), pattern=r"(?i)marlin")
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """A product with quantized weights; repacking and permutation kernels share the namespace."""
    last = view.function.rsplit("::", 1)[-1].lower()
    if "repack" in last:
        return kernel(view, "marlin", "quantize", library="Marlin")
    if "permute" in last:
        return kernel(view, "marlin", "memory", library="Marlin")
    if not last.startswith(("marlin", "moe_marlin", "gptq_marlin", "fused_marlin")):
        return by_words(view, "marlin", library="Marlin")
    return kernel(
        view,
        "marlin",
        "gemm",
        family="moe_gemm" if "moe" in view.function.lower() else "gemm",
        ambiguous=_NO_TILE if "<" in view.text else None,
        library="Marlin",
    )
