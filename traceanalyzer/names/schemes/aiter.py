"""AITER's own kernels: assembly (`_ZN5aiter...bf16gemm_..._64x64_...E`), two-stage MoE, FlyDSL, hgemm."""

from __future__ import annotations

import re

from traceanalyzer.names.build import SPLIT_NOTE, blocks, kernel, number
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

KNOB = "AITER's tuned CSV files (AITER_CONFIG_GEMM_*, AITER_CONFIG_FMOE), which choose the kernel by shape"
_TILE_MN = re.compile(r"_(\d{2,3})x(\d{2,3})(?=_|$)")
_EPILOGUE = re.compile(r"(?<![a-z])(silu|gelu|swiglu)(?![a-z])")


_STAGE_ROLES = {"1": "moe_gate_up", "2": "moe_down"}


def _product(view: NameView, scheme: str, text: str, **fields: object) -> KernelName:
    """Return a product of AITER's; ``text`` says what it does at its end."""
    epilogue = _EPILOGUE.search(text)
    fields |= {"epilogue": epilogue[1] if epilogue else None, "retunable": True, "knob": KNOB, "library": "AITER"}
    return kernel(view, scheme, "gemm", **fields)


@register(
    "aiter_two_stage",
    order=82,
    contains=("moe_ck2stages_",),
    pattern=(
        r"moe_ck2stages_gemm(?P<stage>[12])_(?P<threads>\d{2,4})x(?P<m>\d{1,4})x(?P<n>\d{1,4})x(?P<k>\d{1,4})(?=_|$)"
    ),
)
def read_two_stage(view: NameView, match: re.Match[str]) -> KernelName:
    """Threads x M x N x K; stage 1 is the gate and up projection, stage 2 the down projection."""
    return _product(
        view,
        "aiter_two_stage",
        view.lower,
        family="moe_gemm",
        role=_STAGE_ROLES[match["stage"]],
        **blocks(match.group("m", "n", "k")),
    )


@register(
    "aiter_asm", order=83, contains=("aiter",), pattern=r"(?:aiter::|^_ZN5aiter\d{1,3})(?P<body>\w*(?:gemm|fmoe)\w*)"
)
def read_asm(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """Tile M x N: the last pair between underscores; a block of scales (`per1x32`) is not a tile."""
    body = view.function.rsplit("::", 1)[-1]
    if "gemm" not in body and "fmoe" not in body:
        return None
    moe = "moe" in body
    tiles = [(int(m), int(n)) for m, n in _TILE_MN.findall(body) if min(int(m), int(n)) >= 16]
    stage = re.search(r"stage([12])", body)
    return _product(
        view,
        "aiter_asm",
        body.lower(),
        family="moe_gemm" if moe else "gemm",
        role=_STAGE_ROLES[stage[1]] if stage and moe else None,
        **blocks(tiles[-1] if tiles else None),
        ambiguous=SPLIT_NOTE if "splitk" in body.lower() else None,
    )


@register(
    "flydsl",
    order=84,
    contains=("flydsl", "mfma_moe", "wmma_moe"),
    pattern=(r"(?:flydsl_|[mw]fma_|wmma_)\w{0,200}?_t(?P<m>\d{1,4})x(?P<n>\d{1,4})x(?P<k>\d{1,4})(?=_|$)"),
)
def read_flydsl(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile after `t`, split-K after `split_k` or `ksplit`; moe1 is gate and up, moe2 down."""
    split = re.search(r"_(?:split_?k|k_?split|sk)_?(\d{1,3})(?=_|$)", view.lower)
    stage = re.search(r"moe_?([12])", view.lower)
    return _product(
        view,
        "flydsl",
        view.lower,
        family="moe_gemm" if "moe" in view.lower else "gemm",
        role=_STAGE_ROLES[stage[1]] if stage else None,
        **blocks(match.group("m", "n", "k")),
        split_k=number(split[1]) if split else None,
    )


@register(
    "hgemm",
    order=87,
    prefixes=("hgemm_", "void hgemm_"),
    pattern=(
        r"hgemm_[a-z0-9]{2,8}_(?P<m>\d{1,4})x(?P<n>\d{1,4})x(?P<k>\d{1,4})(?:x\d{1,3})?(?:_SPK(?P<split>\d{1,3}))?(?=_|$)"
    ),
)
def read_hgemm(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N x K, split-K after `SPK`."""
    return _product(view, "hgemm", "", **blocks(match.group("m", "n", "k")), split_k=number(match["split"]))
