"""Traces of known make, for plans and outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from synthetic.models import gptoss_20b
from synthetic.spec import ModelSpec
from traceanalyzer.trace import Trace, open_traces

MOE_CONFIG = {
    "model_type": "mixtral", "num_hidden_layers": 24, "hidden_size": 2880, "intermediate_size": 2880,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
    "num_local_experts": 32, "num_experts_per_tok": 4, "torch_dtype": "bfloat16",
}  # fmt: skip

Rename = Callable[[str, str], str]


def renamed(model: ModelSpec, rename: Rename) -> ModelSpec:
    """The model with other kernel names: (name, role) -> name."""
    layers = tuple(
        replace(layer, kernels=tuple(replace(k, name=rename(k.name, k.role)) for k in layer.kernels))
        for layer in model.layers
    )
    return replace(model, layers=layers)


def fused_moe(batch: int = 4) -> ModelSpec:
    """gpt-oss's blocks with vLLM's fused_moe for both expert products."""
    return renamed(
        gptoss_20b(batch=batch, vendor="cuda"), lambda name, role: "fused_moe_kernel" if "matmul_ogs" in name else name
    )


def opened(path: Path | str) -> Trace:
    """The one trace of a file."""
    return open_traces(path, cache=False).traces[0]
