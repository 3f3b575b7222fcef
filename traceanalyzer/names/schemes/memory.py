"""Copies and fills: Kineto's `Memcpy DtoD (...)` and the runtime's own kernels."""

from __future__ import annotations

import re

from traceanalyzer.names.build import kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register


@register(
    "memory",
    order=5,
    prefixes=("memcpy", "memset", "__amd_rocclr_", "copy", "fill", "cuda memcpy", "[cuda mem", "[hip mem"),
    pattern=r"(?i)^(?:\[?(?:cuda|hip) )?mem(?:cpy|set)|^__amd_rocclr_\w+|^(?:copy|fill)(?:buffer\w{0,40})?$",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName:
    """A copy, or a fill."""
    library = "ROCm runtime" if view.text.startswith("__amd_rocclr") else None
    return kernel(view, "memory", "memory", library=library)
