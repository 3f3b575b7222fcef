"""State-space and linear-attention kernels: Mamba, gated delta rule, lightning attention."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register


@register(
    "ssm",
    order=118,
    contains=(
        "mamba",
        "selective_scan",
        "selective_state",
        "causal_conv1d",
        "chunk_scan",
        "chunk_state",
        "state_passing",
        "delta_rule",
        "chunk_fwd",
        "recompute_w_u",
        "solve_tril",
        "linear_attn",
        "lightning_attn",
        "cumsum",
        "bmm_chunk",
        "kkt",
        "gdn",
        "kda",
        "qkvzba",
        "merge_16x16",
        "fused_recurrent",
    ),
    pattern="",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The block's token mixer where it is not softmax attention; several kernels make one."""
    reading = by_words(view, "ssm")
    return reading if reading is not None and reading.kind == "ssm" else None
