"""CuTe DSL kernels: `kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptr...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import POSITION, classify


@register(
    "cute_dsl",
    order=66,
    prefixes=("kernel_cutlass_", "cutlass_kernel_"),
    pattern=r"^(?:kernel_)?cutlass_(?P<body>\w{1,400}?)(?:_object_at|_tensorptr|$)",
)
def read(view: NameView, match: re.Match[str]) -> KernelName | None:
    """Module, class and the types of the arguments run together; only the part before the object is read."""
    rule = classify(match["body"])
    if rule is None:
        return by_words(view, "cute_dsl", library="CuTe DSL") or kernel(view, "cute_dsl", "unknown", library="CuTe DSL")
    fields: dict[str, object] = {} if rule.family is None else {"family": rule.family}
    if rule.role is not None:
        fields["role"] = None if rule.role == POSITION else rule.role
    return kernel(view, "cute_dsl", rule.kind, library="CuTe DSL", **fields)
