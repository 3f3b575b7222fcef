"""Collectives and expert exchange: NCCL, RCCL, custom and fused all-reduce, deep_ep, MSCCL++, gloo, c10d."""

from __future__ import annotations

import re

from traceanalyzer.names.build import first_mark, kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

_LIBRARIES = (
    ("nccldevkernel_generic", "RCCL"),
    ("ncclkernel_generic", "RCCL"),
    ("rccl", "RCCL"),
    ("nccl", "NCCL"),
    ("deep_ep", "DeepEP"),
    ("deepep", "DeepEP"),
    ("dpsk::", "DeepSeek"),
    ("mscclpp", "MSCCL++"),
    ("gloo", "Gloo"),
    ("c10d::", "PyTorch"),
    ("flashinfer", "FlashInfer"),
    ("tensorrt_llm", "TensorRT-LLM"),
    ("aiter", "AITER"),
    ("sgl", "SGLang"),
    ("vllm", "vLLM"),
    ("_c::", "vLLM"),
    ("nvshmem", "NVSHMEM"),
    ("rocshmem", "rocSHMEM"),
)
_EXPERT_PARALLEL = re.compile(r"(?:^|[:_])(?:ep|pplx_kernels|all_to_all)::")
"""Namespaces of expert-parallel exchange: dispatch of tokens to their experts' devices, combination of what returns."""


@register(
    "communication",
    order=15,
    contains=(
        "reduce",
        "gather",
        "nccl",
        "rccl",
        "alltoall",
        "all_to_all",
        "all2all",
        "multimem",
        "deep_ep",
        "deepep",
        "mscclpp",
        "shmem",
        "gloo:",
        "c10d",
        "symm_mem",
        "userbuffers",
        "pplx",
        "mori",
        "send",
        "lamport",
        "moea2a",
        "moe_a2a",
        "record_param_comms",
        "ep::",
        "internode",
        "intranode",
    ),
    pattern="",
)
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """Anything that moves data between devices, fused norms and products included."""
    lower = view.lower
    rule = classify(view.identifier)
    starts = lower.startswith(("nccl", "rccl", "gloo:", "c10d::", "record_param_comms"))
    starts = starts or _EXPERT_PARALLEL.search(view.function) is not None
    if not starts and (rule is None or rule.kind != "communication"):
        return None
    library = first_mark(lower, _LIBRARIES)
    return kernel(view, "communication", "communication", library=library, epilogue=_epilogue(lower))


def _epilogue(lower: str) -> str | None:
    """What an all-reduce kernel also does: the residual add and norm, quantization."""
    return "_".join(word for word, marks in _FUSED.items() if any(mark in lower for mark in marks)) or None


_FUSED = {
    "norm": ("rmsnorm", "rms_norm", "layernorm", "layer_norm"),
    "quant": ("quant",),
    "gemm": ("gemm", "matmul"),
}
