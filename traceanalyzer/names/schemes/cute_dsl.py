"""CuTe DSL kernels: `kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptr...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_rule
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify


@register(
    "cute_dsl",
    order=66,
    prefixes=("kernel_cutlass_", "cutlass_kernel_"),
    pattern=r"^(?:kernel_)?cutlass_(?P<body>\w{1,400}?)(?:_object_at|_tensorptr|$)",
)
def read(view: NameView, match: re.Match[str]) -> KernelName:
    """Module, class and the types of the arguments run together; only the part before the object is read."""
    return by_rule(view, "cute_dsl", classify(match["body"]) or classify(view.identifier), library="CuTe DSL")
