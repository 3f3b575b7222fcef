"""nvjet, cuBLAS's kernels for Hopper and later: `nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import COLUMN_MAJOR, SPLIT_NOTE, blocks, kernel, number, same_inputs
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import register

_LETTER = {"h": "fp16", "t": "bf16", "s": "fp32", "q": "fp8_e4m3", "d": "fp64", "o": "fp4_e2m1"}


@register(
    "nvjet",
    order=20,
    prefixes=("nvjet_",),
    pattern=(
        r"^nvjet_(?:sm(?P<sm>\d{2,3})[af]?_)?(?P<types>[a-z]{2,8})_(?:mma_)?"
        r"(?P<m>\d{1,4})x(?P<n>\d{1,4})(?:"
        r"_(?P<k>\d{1,4})x(?P<stages>\d{1,2})_(?P<cluster_m>\d{1,2})x(?P<cluster_n>\d{1,2})"
        r"|x(?P<mma_k>\d{1,4})_(?P<mma_stages>\d{1,2})_\d{1,4}x\d{1,4}x\d{1,4}"
        r")(?P<rest>(?:_\w{1,120})?)$"
    ),
)
def read(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N, then K x stages and the cluster; the sm120 form has M x N x K, stages and a warp tile."""
    rest = match["rest"].split("_")
    cluster = match["cluster_m"] and (int(match["cluster_m"]), int(match["cluster_n"]))
    return kernel(
        view,
        "nvjet",
        "gemm",
        **blocks((match["m"], match["n"], match["k"] or match["mma_k"])),
        stages=number(match["stages"] or match["mma_stages"]),
        cluster=cluster or None,
        dtypes=_dtypes(match["types"]),
        epilogue="bias" if "bias" in rest else None,
        ambiguous=f"{COLUMN_MAJOR} {SPLIT_NOTE}" if "splitK" in rest else COLUMN_MAJOR,
        library="cuBLAS",
    )


@register("nvjet_other", order=21, prefixes=("nvjet",), pattern="")
def read_other(view: NameView, _match: re.Match[str]) -> KernelName:
    """A form of nvjet name that is not known here: a matrix product, without numbers."""
    return kernel(view, "nvjet", "gemm", library="cuBLAS")


def _dtypes(letters: str) -> Dtypes:
    """Three letters: inputs, accumulator, output. Five: A, B, C, accumulator, output."""
    kinds = [_LETTER.get(letter) for letter in letters]
    if len(kinds) == 3:
        return same_inputs(kinds[0], kinds[0], kinds[2])
    if len(kinds) == 5:
        return same_inputs(kinds[0], kinds[1], kinds[4])
    return Dtypes()
