"""AITER's Triton kernels, which spell their settings out: `_gemm_a16_w16_kernel_BLOCK_SIZE_M_64_...`."""

from __future__ import annotations

import re
from dataclasses import replace

from traceanalyzer.names.build import by_rule, number
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import POSITION, classify

KNOB = "AITER's Triton configuration: the JSON files of aiter/ops/triton/configs, by GPU and operator"
_SETTING = re.compile(
    r"_(BLOCK(?:_SIZE)?_[MNK]|NUM_KSPLIT|ACTUAL_KSPLIT|SPLIT_?K|NUM_STAGES|num_stages)_(\d{1,6})(?=_|$)"
)
_KEYS = {
    "BLOCK_SIZE_M": "block_m",
    "BLOCK_M": "block_m",
    "BLOCK_SIZE_N": "block_n",
    "BLOCK_N": "block_n",
    "BLOCK_SIZE_K": "block_k",
    "BLOCK_K": "block_k",
    "NUM_KSPLIT": "split_k",
    "ACTUAL_KSPLIT": "split_k",
    "SPLITK": "split_k",
    "SPLIT_K": "split_k",
    "NUM_STAGES": "stages",
    "num_stages": "stages",
}


@register(
    "aiter_triton",
    order=80,
    contains=("_block_size_m_", "_block_size_n_", "_block_size_k_", "_block_m_", "_block_n_", "_block_k_"),
    pattern=r"^(?P<function>\w{1,200}?)_(?:[A-Z][A-Z_]*BLOCK|BLOCK)(?:_SIZE)?_[MNK]_\d",
)
def read(view: NameView, match: re.Match[str]) -> KernelName | None:
    """Keys and values after the function's name; a key that is absent stays unknown."""
    rule = classify(match["function"])
    if rule is None:
        return None
    settings: dict[str, int | None] = {}
    for setting in _SETTING.finditer(view.text):
        settings.setdefault(_KEYS[setting[1]], number(setting[2]))
    if rule.kind == "gemm" and "_reduce_kernel" in match["function"]:
        rule = replace(rule, kind="gemm_helper", role=POSITION)
    return by_rule(view, "aiter_triton", rule, retunable=True, knob=KNOB, library="AITER", **settings)
