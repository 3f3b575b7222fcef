"""triton_kernels (gpt-oss): `_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu` and its routing kernels."""

from __future__ import annotations

import re

from traceanalyzer.names.build import blocks, dtype, kernel, number
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import register

KNOB = (
    "triton_kernels' opt_flags constraints (update_opt_flags_constraints): block_m, block_n, block_k, split_k"
    " on AMD, block_m, block_k, split_k, num_stages on NVIDIA; num_warps only in later versions"
)
_DTYPE = r"(?:mx|nv)?[a-wyz0-9]+"


@register(
    "triton_kernels",
    order=10,
    prefixes=("_matmul", "_p_matmul", "matmul_ogs"),
    pattern=(
        r"^_?(?:p_)?matmul(?:_ogs)?(?:_[a-z]{1,12}){0,3}_[NT]{3}"
        rf"_(?P<output>{_DTYPE})x(?P<activation>{_DTYPE})x(?P<weight>{_DTYPE})"
        r"_(?P<m>\d{1,5})x(?P<n>\d{1,5})x(?P<k>\d{1,5})x(?P<split>\d{1,4})(?:_(?P<epilogue>\w{1,200}))?$"
    ),
)
def read_matmul(view: NameView, match: re.Match[str]) -> KernelName:
    """Layouts (N/T of output, activation, weight), element types in that order, M x N x K x split-K, epilogue.

    A fused SwiGLU can only stand on the gate and up projection; without one the position decides.
    """
    epilogue = match["epilogue"]
    return kernel(
        view,
        "triton_kernels",
        "gemm",
        family="moe_gemm",
        role="moe_gate_up" if epilogue and "swiglu" in epilogue else None,
        **blocks(match.group("m", "n", "k")),
        split_k=number(match["split"]),
        dtypes=Dtypes(**{side: dtype(match[side]) for side in ("output", "activation", "weight")}),
        epilogue=epilogue,
        retunable=True,
        knob=KNOB,
        library="triton_kernels",
    )


@register(
    "triton_kernels_scatter",
    order=11,
    prefixes=("_finalize_matmul", "_reduce_grouped", "_reduce_forward"),
    pattern=r"^_(?:finalize_matmul|reduce_grouped|reduce_forward)",
)
def read_scatter(view: NameView, _match: re.Match[str]) -> KernelName:
    """Adds up split-K parts and the experts' outputs of each token."""
    return kernel(view, "triton_kernels", "gemm_helper", family="moe", role="moe_combine", library="triton_kernels")


@register(
    "triton_kernels_routing",
    order=12,
    prefixes=(
        "_topk_forward",
        "_topk_backward",
        "_sum_bitmatrix",
        "_combined_routing",
        "_routing_",
        "_expt_data",
        "_bitmatrix",
        "_ragged_tensor_metadata",
        "_masked_compaction",
        "_compute_writeback_idx",
        "_keyed_add",
        "vpopc",
    ),
    pattern=r"^\w+$",
)
def read_routing(view: NameView, _match: re.Match[str]) -> KernelName:
    """Top-k of the router's logits, histogram, and the tables that the expert products read."""
    return kernel(view, "triton_kernels", "moe_routing", library="triton_kernels")
