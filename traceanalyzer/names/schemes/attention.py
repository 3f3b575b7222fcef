"""Attention written in C++: FlashAttention 2, FlashInfer, FlashMLA, paged attention."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, first_mark
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_LIBRARIES = (
    ("flashinfer", "FlashInfer"),
    ("flash_mla", "FlashMLA"),
    ("flashmla", "FlashMLA"),
    ("splitkv_mla", "FlashMLA"),
    ("flash", "FlashAttention"),
    ("vllm", "vLLM"),
    ("aiter", "AITER"),
)


@register(
    "attention",
    order=120,
    contains=(
        "flash_fwd",
        "flash_attn",
        "paged_attention",
        "flashinfer",
        "flash_mla",
        "flashmla",
        "splitkv_mla",
        "fmha",
    ),
    pattern=r"::|<|^(?:void )?\w*(?:flash_fwd|paged_attention|fmha)",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The numbers in `Flash_fwd_kernel_traits<128, 64, 128, 4>` start with the head size: no tile is read."""
    lower = view.function.lower()
    library = first_mark(lower, _LIBRARIES)
    return by_words(view, "flashinfer" if library == "FlashInfer" else "attention", library=library)
