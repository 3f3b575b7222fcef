"""Operators of CPU traces, where an operator stands for the kernel: `aten::mm`, `_C::rms_norm`, `vllm::...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, kernel
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.text import NameView

_LIBRARIES = {
    "aten": "PyTorch",
    "prims": "PyTorch",
    "mkldnn": "oneDNN",
    "mkldnn_prepacked": "oneDNN",
    "onednn": "oneDNN",
    "quantized": "PyTorch",
    "_C": "vLLM",
    "_C_cache_ops": "vLLM",
    "_moe_C": "vLLM",
    "vllm": "vLLM",
    "sgl_kernel": "SGLang",
    "sglang": "SGLang",
}
_VIEWS_AND_ALLOCATIONS = (
    "alias as_strided broadcast_tensors broadcast_to chunk clone_view conj detach detach_ diagonal empty "
    "empty_like empty_permuted empty_strided expand expand_as flatten is_nonzero lift_fresh movedim "
    "narrow new_empty new_empty_strided numpy_T permute ravel real reshape reshape_as resize_ "
    "resolve_conj resolve_neg result_type select set_ slice split split_with_sizes squeeze squeeze_ "
    "swapaxes t to transpose unbind unflatten unfold unsafe_chunk unsafe_split unsqueeze unsqueeze_ view "
    "view_as view_as_real view_as_complex _reshape_alias _unsafe_view _has_compatible_shallow_copy_type "
    "weak_ref_tensor can_cast tensor_split mT mH T"
)
_NO_WORK = frozenset(_VIEWS_AND_ALLOCATIONS.split())
_KINDS = {
    "item": "memory",
    "_local_scalar_dense": "memory",
    "_to_copy": "memory",
    "contiguous": "memory",
    "ones": "memory",
    "full": "memory",
    "full_like": "memory",
    "ones_like": "memory",
    "repeat": "memory",
    "repeat_interleave": "memory",
    "stack": "memory",
    "where": "elementwise",
    "logical_and": "elementwise",
    "logical_or": "elementwise",
    "logical_not": "elementwise",
    "bitwise_and": "elementwise",
    "bitwise_or": "elementwise",
    "bitwise_not": "elementwise",
    "unique": "index",
    "_unique2": "index",
    "all": "reduction",
    "any": "reduction",
    "wait_tensor": "communication",
}


@register(
    "cpu_op",
    order=79,
    contains=("::",),
    pattern=(
        r"^(?P<space>aten|prims|_?mkldnn\w{0,40}|onednn|quantized|_C\w{0,40}|_moe_C|vllm|sgl_kernel|sglang"
        r"|_c10d_functional|torch_ipex|fbgemm|inductor)::(?P<op>\w{1,120})(?:\.\w{1,60})?$"
    ),
)
def read(view: NameView, match: re.Match[str]) -> KernelName | None:
    """An operator without template arguments or parameters. Views and allocations do no work of their own."""
    op = match["op"]
    library = _LIBRARIES.get(match["space"])
    kind = "view" if op in _NO_WORK else _KINDS.get(op)
    if kind is not None:
        return kernel(view, "cpu_op", kind, library=library)
    return by_words(view, "cpu_op", library=library)
