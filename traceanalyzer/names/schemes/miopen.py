"""MIOpen: convolutions (`igemm_fwd_gtcx3_...`, `miopenSp3AsmConv_...`), batch norm, pooling, layout changes."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words, first_mark, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

# In order: the first text found in the name decides.
_KINDS: tuple[tuple[str, str], ...] = (
    ("batchnorm", "norm"),
    ("layernorm", "norm"),
    ("groupnorm", "norm"),
    ("lrn", "norm"),
    ("pooling", "pooling"),
    ("softmax", "softmax"),
    ("neuron", "activation"),
    ("batched_transpose", "memory"),
    ("subtensorop", "memory"),
    ("transpose_", "memory"),
    ("optensor", "elementwise"),
    ("op_tensor", "elementwise"),
    ("lstm", "rnn"),
    ("rnn", "rnn"),
    ("adam", "optimizer"),
    ("igemm", "convolution"),
    ("conv", "convolution"),
    ("winograd", "convolution"),
    ("im2d2col", "convolution"),
    ("col2im2d", "convolution"),
    ("im3d2col", "convolution"),
    ("col2im3d", "convolution"),
)


@register(
    "miopen",
    order=44,
    prefixes=(
        "miopen",
        "mlopen",
        "mlo",
        "igemm_",
        "batched_transpose_",
        "subtensorop",
        "optensor",
        "op_tensor",
        "naive_conv",
        "gridwise_convolution",
        "im2d2col",
        "col2im2d",
        "im3d2col",
        "col2im3d",
        "gcnasm",
        "sp3asm",
        "gfx",
        "transpose_nchw",
        "transpose_cnhw",
    ),
    pattern=(
        r"(?i)^(?:mlopen|mlo(?=[a-z]*pooling)|igemm_(?:fwd|bwd|wrw|upsampling)|batched_transpose_\d|subtensorop|op_?tensor"
        r"|naive_conv|gridwise_convolution|im[23]d2col|col2im[23]d|gcnasm|sp3asm|gfx\w{0,40}(?:winograd|conv)"
        r"|transpose_[nchw]{4}|miopen)"
    ),
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """No tile is read: MIOpen finds the convolution itself, from its database or by trying."""
    kind = first_mark(view.lower, _KINDS)
    if kind is None:
        return by_words(view, "miopen", library="MIOpen")
    return kernel(view, "miopen", kind, library="MIOpen")
