"""C++ kernels of the serving engines and their libraries, told by namespace; the words give the kind."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_rule
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

_SPACES = (
    ("vllm", "vllm", "vLLM"),
    ("sgl", "sglang", "SGLang"),
    ("aiter", "aiter", "AITER"),
    ("opus", "aiter", "AITER"),
    ("tensorrt_llm", "tensorrt_llm", "TensorRT-LLM"),
    ("moe::dev", "tensorrt_llm", "TensorRT-LLM"),
    ("flashinfer", "flashinfer", "FlashInfer"),
    ("deep_ep", "communication", "DeepEP"),
    ("fbgemm", "fbgemm", "FBGEMM"),
    ("transformer_engine", "transformer_engine", "TransformerEngine"),
    ("bitsandbytes", "bitsandbytes", "bitsandbytes"),
)


@register(
    "engines",
    order=140,
    contains=tuple(space for space, _, _ in _SPACES),
    pattern=r"::|^_Z",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The namespace names the library, the function's words the kind."""
    function = view.function.lower()
    for space, scheme, library in _SPACES:
        if function.startswith(space):
            if "gemm" in space:  # the namespace's own words say nothing of the kernel
                return by_rule(view, scheme, classify(view.identifier.partition("::")[2]), library=library)
            return by_rule(view, scheme, classify(view.identifier), library=library)
    return None
