"""Operators of CPU traces, where an operator stands for the kernel: `aten::mm`, `_C::rms_norm`, `vllm::...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

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
    "weak_ref_tensor can_cast tensor_split mT mH T _transformer_encoder_layer_fwd"
)
_OPERATORS = {
    "memory": "item _local_scalar_dense _to_copy contiguous ones ones_like full full_like repeat stack"
    " repeat_interleave zero_ new_ones new_full pin_memory roll flip",
    "elementwise": "where logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor"
    " bitwise_left_shift bitwise_right_shift abs ceil floor round trunc erf log log2 log10 log1p exp2 expm1 remainder"
    " fmod floor_divide true_divide sgn sign maximum minimum softplus hardtanh isnan isinf isfinite nan_to_num rsub"
    " reciprocal square dropout lerp addcmul addcdiv threshold atan2 bucketize isin",
    "reduction": "all any norm linalg_vector_norm var std var_mean std_mean logsumexp prod aminmax bincount",
    "index": "unique _unique2 unique_consecutive gather scatter searchsorted",
    "sampling": "uniform_ random_ rand rand_like randint",
    "random": "randn randn_like normal_ normal bernoulli_ bernoulli native_dropout",
    "softmax": "_log_softmax log_softmax",
    "gemm": "einsum linalg_matmul tensordot outer",
    "communication": "wait_tensor",
    "view": _VIEWS_AND_ALLOCATIONS,
}
_KINDS = {op: kind for kind, ops in _OPERATORS.items() for op in ops.split()}


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
    kind = _KINDS.get(op) or _KINDS.get(op.removesuffix("_"))
    if kind is not None:
        return kernel(view, "cpu_op", kind, library=library)
    return by_words(view, "cpu_op", library=library)
