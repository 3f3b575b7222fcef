"""ggml, the kernels of llama.cpp: `mul_mat_vec_q<(ggml_type)12, ...>`, `flash_attn_ext_f16<...>`, `k_get_rows<...>`.

vLLM's and others' GGUF kernels are copies under the same names.
"""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_rule, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

_TYPE = r"(?:f32|f16|bf16|i32|i64|q\d\w*)"
# In order: the first pattern that the function's name fits decides.
_KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"mul_mat\w*fixup|mul_mat\w*reduce", "gemm_helper"),
        (r"mm_ids_helper|mmq_ids|topk_moe|moe_expert", "moe_routing"),
        (r"mul_mat|dequantize_mul_mat|out_prod", "gemm"),
        (r"flash_attn|fattn", "attention"),
        (r"ssm_|gated_delta|gated_linear|rwkv|wkv\d?_", "ssm"),
        (r"norm_(?:mul_|back_|fused_)*f32|norm_back|group_norm|l2_norm", "norm"),
        (r"^rope_", "rope"),
        (r"^soft_?max|_soft_max", "softmax"),
        (r"^k_set_rows", "kv_write"),
        (r"^k_?get_rows|^get_rows", "index"),
        (r"^quantize_|_quantize_", "quantize"),
        (r"^dequantize_block|^convert_unary|^k_?copy_|^cpy_|^concat_|^pad_|^dup_|^k_repeat|^repeat_|^fill_", "memory"),
        (r"argsort|top_?k|sort_", "sort"),
        (r"argmax", "sampling"),
        (r"cumsum", "scan"),
        (r"opt_step", "optimizer"),
        (r"cross_entropy", "loss"),
        (r"im2col|conv", "convolution"),
        (r"pool", "pooling"),
        (r"upscale|interpolate", "resize"),
        (r"_rows_|^sum_|^mean_|count_equal", "reduction"),
        (r"bin_bcast|scale_|unary|clamp|diag_mask|acc_|softcap|timestep|arange|tri_|add_id", "elementwise"),
    )
)
_ACTIVATION = re.compile(r"(?:op_)?(?:silu|gelu|swiglu|geglu|reglu|relu)")


@register(
    "ggml",
    order=98,
    contains=(
        "ggml",
        "mul_mat",
        "k_get_rows",
        "k_set_rows",
        "get_rows",
        "k_bin_bcast",
        "bin_bcast",
        "flash_attn_ext",
        "flash_attn_vec",
        "flash_attn_tile",
        "flash_attn_combine_results",
        "flash_attn_stream_k",
        "flash_attn_mask_to",
        "soft_max_",
        "quantize_q8_1",
        "quantize_mmq",
        "dequantize_block",
        "convert_unary",
        "unary_op_kernel<",
        "unary_gated_op",
        "norm_f32",
        "rope_norm",
        "rope_neox",
        "rope_multi",
        "rope_vision",
        "scale_f32",
        "concat_f32",
        "concat_cont",
        "concat_non_cont",
        "argsort_f32",
        "argmax_f32",
        "ssm_conv_f32",
        "ssm_scan_f32",
        "gated_delta_net",
        "gated_linear_attn_f32",
        "rwkv_wkv",
        "diag_mask_inf",
        "cpy_",
        "cpy_scalar",
        "pad_f32",
        "softcap_f32",
        "timestep_embedding_f32",
        "mm_ids_helper",
        "topk_moe_cuda",
        "sum_rows_f32",
        "reduce_rows_f32",
        "opt_step_",
        "upscale_f32",
    ),
    pattern="",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The function's own name, without its template: types and the number of columns, no tile."""
    function = view.function
    if "::" in function:
        return None
    lower = function.lower()
    kind = next((kind for pattern, kind in _KINDS if pattern.search(lower)), None)
    if kind is None:
        return by_rule(view, "ggml", rule, library="ggml") if (rule := classify(view.identifier)) else None
    if kind == "elementwise" and _ACTIVATION.search(view.lower[:400]):
        kind = "activation"
    return kernel(view, "ggml", kind, library="ggml")
