"""Triton kernels whose names hold no tile: fused_moe_kernel, block-scaled products, unified attention."""

from __future__ import annotations

import re

from traceanalyzer.names.build import kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

FUSED_MOE = (
    "JSON in VLLM_TUNED_CONFIG_FOLDER (vLLM) or SGLANG_MOE_CONFIG_DIR (SGLang): BLOCK_SIZE_M/N/K, GROUP_SIZE_M,"
    " num_warps, num_stages by number of tokens"
)
BLOCK_SCALED = (
    "JSON inside the installed package (quantization/utils/configs): BLOCK_SIZE_M/N/K, GROUP_SIZE_M, num_warps,"
    " num_stages by number of tokens"
)


@register(
    "triton_fused_moe",
    order=110,
    contains=("fused_moe_kernel", "batched_triton_kernel", "fused_batched_moe", "moe_kernel_gptq_awq"),
    pattern=r"^_?(?:fused_moe_kernel\w{0,80}|batched_triton_kernel|fused_batched_moe\w{0,80})$",
)
def read_fused_moe(view: NameView, _match: re.Match[str]) -> KernelName:
    """The same kernel does gate-up and down: the position decides. The tile is in Triton's cache."""
    return kernel(
        view, "triton", "gemm", family="moe_gemm", role=None, retunable=True, knob=FUSED_MOE, library="Triton"
    )


@register(
    "triton_block_scaled",
    order=111,
    contains=("w8a8",),
    pattern=r"^_?w8a8_(?:triton_)?(?:block_scaled_mm|block_fp8_matmul|block_int8_matmul)\w{0,80}$",
)
def read_block_scaled(view: NameView, _match: re.Match[str]) -> KernelName:
    """A product with block scales; the tile is in Triton's cache."""
    return kernel(view, "triton", "gemm", retunable=True, knob=BLOCK_SCALED, library="Triton")


@register(
    "triton_gemm",
    order=112,
    prefixes=(
        "scaled_mm_kernel",
        "_scaled_mm",
        "matmul_kernel",
        "awq_gemm",
        "_lora_",
        "triton_scaled_mm",
        "_bgmv",
        "_sgmv",
    ),
    pattern=r"^_?(?:triton_)?(?:scaled_mm_kernel|matmul_kernel\w{0,80}|awq_gemm_kernel|lora_(?:shrink|expand)\w{0,80}|[bs]gmv_\w{1,80})$",
)
def read_gemm(view: NameView, _match: re.Match[str]) -> KernelName:
    """A product whose tile is chosen in the code."""
    return kernel(view, "triton", "gemm", library="Triton")


@register(
    "triton_attention",
    order=113,
    prefixes=(
        "kernel_unified_attention",
        "kernel_paged_attention",
        "reduce_segments",
        "_fwd_",
        "_attn_fwd",
        "merge_attn_states_kernel",
        "_decode_",
        "_kernel_unified",
        "_kernel_paged",
        "_paged_decode",
        "_bwd_",
        "bwd_kernel",
        "_splitk_reduce",
    ),
    pattern=(
        r"^_?(?:kernel_(?:unified|paged)_attention\w{0,80}|reduce_segments|fwd_kernel(?:_stage[12])?(?:_asm)?|attn_fwd\w{0,80}"
        r"|fwd_kernel_splitK|splitK_reduce|bwd_kernel(?:_d[kqv]\w{0,40}|_one_col_block)?|bwd_preprocess(?:_do_o_dot)?"
        r"|fwd_grouped_kernel_stage[12]\w{0,40}|merge_attn_states_kernel|decode_(?:att|grouped_att|softmax)\w{0,80}"
        r"|paged_decode\w{0,80})$"
    ),
)
def read_attention(view: NameView, _match: re.Match[str]) -> KernelName:
    """Attention and the reduction of its segments; the tile is chosen in the code."""
    return kernel(view, "triton", "attention", library="Triton")
