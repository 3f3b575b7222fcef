"""cuDNN: convolutions (`cudnn::cnn::wgrad_alg0_engine`, `volta_scudnn_128x64_relu_...`), batch norm, layout changes."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_rule, first_mark, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

# In order: the first text found in the function's name decides.
_KINDS: tuple[tuple[str, str], ...] = (
    ("sdpa", "attention"),
    ("fmha", "attention"),
    ("attention", "attention"),
    ("bn_", "norm"),
    ("batchnorm", "norm"),
    ("batch_norm", "norm"),
    ("layernorm", "norm"),
    ("rmsnorm", "norm"),
    ("converttensor", "memory"),
    ("tonhwc", "memory"),
    ("tonchw", "memory"),
    ("padding", "memory"),
    ("pooling", "pooling"),
    ("softmax", "softmax"),
    ("lstm", "rnn"),
    ("rnn_", "rnn"),
    ("gru_", "rnn"),
    ("grad", "convolution"),
    ("conv", "convolution"),
    ("fprop", "convolution"),
    ("winograd", "convolution"),
    ("cudnn_", "convolution"),
    ("fft", "convolution"),
    ("flip_filter", "convolution"),
    ("precompute", "convolution"),
    ("offsets", "convolution"),
    ("im2col", "convolution"),
    ("first_layer", "convolution"),
    ("tensor", "elementwise"),
)
"""`scudnn_128x64` and the like are single or half precision convolutions: `cudnn_` stands in their names."""


@register("cudnn", order=43, contains=("cudnn",), pattern="")
def read(view: NameView, _match: re.Match[str]) -> KernelName:
    """No tile is read: which convolution runs is cuDNN's choice, by heuristics or a benchmark of its own."""
    function = view.function.lower()
    # A wrapper says nothing: `cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_...>`.
    text = function if view.identifier is view.function else view.lower
    kind = first_mark(text.removeprefix("cudnn::").removeprefix("cudnn_"), _KINDS)
    if kind is None:
        return by_rule(view, "cudnn", classify(view.identifier), library="cuDNN")
    return kernel(view, "cudnn", kind, library="cuDNN")
