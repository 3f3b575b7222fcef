"""cuBLAS before nvjet: xmma (`sm90_xmma_gemm_...tilesize64x128x64...`) and `ampere_..._128x64_...` names."""

from __future__ import annotations

import re

from traceanalyzer.names.build import (
    COLUMN_MAJOR,
    SPLIT_NOTE,
    blocks,
    extents,
    groups,
    joined_words,
    kernel,
    number,
    same_inputs,
)
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import register

_TILE = re.compile(r"_tilesize(\d{1,4})x(\d{1,4})x(\d{1,4})(?=_|$)")
_STAGE = re.compile(r"_stage(\d{1,2})(?=_|$)")
_CLUSTER = re.compile(r"_cluster(?:size)?(\d{1,2})x(\d{1,2})x(\d{1,2})(?=_|$)")
_INPUTS = re.compile(r"_xmma_gemm_(tf32|bf16|[a-z]\d{1,2}|e4m3|e5m2)(tf32|bf16|[a-z]\d{1,2}|e4m3|e5m2)_")
_CONVOLUTIONS = frozenset({"fprop", "dgrad", "wgrad", "implicit", "deconv"})
_CHOICE = "Only through cuBLASLt's choice of algorithm"
_EPILOGUES = ("bias", "relu", "gelu", "silu")


@register("cublas_xmma", order=40, contains=("_xmma_",), pattern=r"sm\d{2,3}[af]?_xmma_(?P<op>[a-z]+)")
def read_xmma(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N x K after `tilesize`, depth after `stage` where given; warp and warp-group sizes are not it.

    `fprop`, `dgrad` and `wgrad` are cuDNN's convolutions, which cuBLAS's kernels are built like.
    """
    text = view.text
    if match["op"] in _CONVOLUTIONS:
        return kernel(view, "cudnn", "convolution", library="cuDNN")
    tile, stage, inputs = _TILE.search(text), _STAGE.search(text), _INPUTS.search(text)
    return kernel(
        view,
        "cublas_xmma",
        "gemm",
        **blocks(groups(tile)),
        stages=number(stage[1]) if stage else None,
        cluster=extents(_CLUSTER.search(text)),
        dtypes=same_inputs(inputs[1], inputs[2]) if inputs else Dtypes(),
        epilogue=joined_words(view.lower, _EPILOGUES),
        ambiguous=_note(view.lower) if tile else None,
        knob=_CHOICE,
        library="cuDNN" if "cudnn" in view.lower else "cuBLAS",
    )


@register(
    "cublas",
    order=41,
    prefixes=(
        "ampere_",
        "volta_",
        "turing_",
        "maxwell_",
        "hopper_",
        "pascal_",
        "kepler_",
        "ada_",
        "blackwell_",
        "sm80_",
        "gp10",
        "void ampere_",
        "void volta_",
        "void turing_",
    ),
    pattern=(
        r"(?:ampere|volta|turing|maxwell|hopper|pascal|kepler|ada|blackwell|sm\d{2,3}|gp10\d)_"
        r"(?:(?P<input>fp16|bf16|fp32|int8|fp64|tf32)_)?[a-z]?\w{0,12}?gemm(?:_\w{1,12}?)?_(?P<m>\d{1,4})x(?P<n>\d{1,4})"
        r"(?:x(?P<depth>\d{1,4}))?(?=_|$)"
    ),
)
def read_arch(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N, then `stages_KxS`; `sliced1x2` is the split inside a block and `ldg8` the load width."""
    stages = re.search(r"_stages_(\d{1,4})x(\d{1,2})(?=_|$)", view.text)
    return kernel(
        view,
        "cublas",
        "gemm",
        block_m=number(match["m"]),
        block_n=number(match["n"]),
        block_k=number(match["depth"]) or (number(stages[1]) if stages else None),
        stages=number(stages[2]) if stages else None,
        dtypes=same_inputs(match["input"], match["input"]) if match["input"] else Dtypes(),
        epilogue=joined_words(view.lower, _EPILOGUES),
        knob=_CHOICE,
        ambiguous=_note(view.lower),
        library="cuBLAS",
    )


@register(
    "cublas_other",
    order=42,
    contains=("cublas", "splitkreduce", "gemv", "gemmk1", "gemmsn_", "gemm_kernel1x1", "gemm_kernel2x2"),
    pattern="",
)
def read_other(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """Matrix-vector kernels (no tile in the name), dot products, and the sum of split-K parts."""
    function = view.function
    if re.search(r"(?i)splitkreduce|^(?:cublaslt::)?epilogue::|scal_kernel|scalar_kernel", function):
        return kernel(view, "cublas", "gemm_helper", library="cuBLAS")
    if re.search(r"dot_kernel|reduce_1Block_kernel", function):
        return kernel(view, "cublas", "reduction", library="cuBLAS")
    if re.search(r"gemvx::|gemv\w{0,8}_kernel_val|gemvNSP", function):
        return kernel(view, "gemv", "gemm", library="cuBLAS")
    if re.search(r"(?i)^cublas|gemmk1_kernel|gemmSN_|gemm_kernel[12]x[12]", function):
        return kernel(view, "cublas", "gemm", library="cuBLAS")
    return None


def _note(lower: str) -> str:
    return f"{COLUMN_MAJOR} {SPLIT_NOTE}" if "splitk" in lower or "split_k" in lower else COLUMN_MAJOR
