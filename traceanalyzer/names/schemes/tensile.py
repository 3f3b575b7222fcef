"""Tensile and hipBLASLt: `Cijk_Alik_Bljk_BBS_BH_..._MT32x32x256_MI16x16x1_..._GSU4_..._SK0_...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import COLUMN_MAJOR, blocks, groups, kernel, number, same_inputs
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import register

KNOB = "PyTorch TunableOp (PYTORCH_TUNABLEOP_ENABLED=1), or offline hipBLASLt tuning (HIPBLASLT_TUNING_OVERRIDE_FILE)"
_TILE = re.compile(r"_MT(\d{1,4})x(\d{1,4})x(\d{1,5})(?=_|$)")
_SPLIT = re.compile(r"_GSU(\d{1,4})(?=_|$)")
_STREAM_K = re.compile(r"_SK([1-9])(?=_|$)")
_TYPES = re.compile(r"^Cijk_[A-Za-z]{4}_[A-Za-z]{4}_((?:F8N|B8N|F8|B8|I8|4x?i8|[SDHBIXCZ]){2,4}?)(?:_|$)")
_TYPE = re.compile(r"F8N|B8N|F8|B8|I8|[SDHBIXCZ]")
_HIPBLASLT = ("_UserArgs", "_Bias", "_SAV", "_HAS", "_SAB", "_AFC")
_NAMES = {
    "B": "bf16",
    "H": "fp16",
    "S": "fp32",
    "D": "fp64",
    "X": "tf32",
    "I": "int32",
    "I8": "int8",
    "F8": "fp8_e4m3",
    "F8N": "fp8_e4m3",
    "B8": "fp8_e5m2",
    "B8N": "fp8_e5m2",
}


@register("tensile", order=30, prefixes=("cijk_", "custom_cijk_"), pattern=r"Cijk_[A-Za-z]{4}_")
def read(view: NameView, match: re.Match[str]) -> KernelName:
    """Macro tile M x N x depth-U, global split-U where the name holds a number, element types.

    `GSUAMB` names only how the parts are added up: their number is a launch argument, so split_k is unknown.
    """
    text = view.text[match.start() :]
    tile = _TILE.search(text)
    split = _SPLIT.search(text)
    hipblaslt = any(mark in text for mark in _HIPBLASLT)
    notes = [COLUMN_MAJOR] if tile else []
    if _STREAM_K.search(text):
        notes.append("Stream-K: the reduction axis is split at launch.")
    return kernel(
        view,
        "tensile",
        "gemm",
        **blocks(groups(tile)),
        split_k=number(split[1]) if split else None,
        dtypes=_dtypes(text),
        epilogue="bias" if "_Bias" in text else None,
        retunable=True,
        knob=KNOB,
        ambiguous=" ".join(notes) or None,
        library="hipBLASLt" if hipblaslt else "Tensile",
    )


def _dtypes(text: str) -> Dtypes:
    """Two letters: data, compute. Three: inputs, output, compute. Four: A, B, output, compute."""
    match = _TYPES.match(text)
    kinds = [_NAMES.get(token) for token in _TYPE.findall(match[1])] if match else []
    if len(kinds) == 2:
        return same_inputs(kinds[0], kinds[0], kinds[0])
    if len(kinds) == 3:
        return same_inputs(kinds[0], kinds[0], kinds[1])
    if len(kinds) == 4:
        return same_inputs(kinds[0], kinds[1], kinds[2])
    return Dtypes()


@register(
    "tensile_helper",
    order=31,
    contains=("postgsu", "betaonly", "gsureduction"),
    pattern=r"(?i)PostGSU|BetaOnly|GSUReduction",
)
def read_helper(view: NameView, _match: re.Match[str]) -> KernelName:
    """Adds up the parts of a split product, or scales its output beforehand (`Cijk_SB_BetaOnly...`)."""
    return kernel(view, "tensile", "gemm_helper", library="Tensile")
