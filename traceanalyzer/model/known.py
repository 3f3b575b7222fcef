"""Built-in models: a table of configs with their sources, and lookup by name."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from traceanalyzer.model.architecture import Architecture, ModelError, with_formats
from traceanalyzer.model.config import architecture_of, read_config
from traceanalyzer.model.formats import format_named


@dataclass(frozen=True)
class Known:
    """One built-in model.

    Attributes:
        name: its name on the Hugging Face hub.
        config: the keys of its config.json that matter.
        source: where they come from.
        confidence: ``A`` (the published config), ``B`` (a second-hand copy) to ``D`` (unconfirmed).
    """

    name: str
    config: dict[str, Any]
    source: str
    confidence: str


AIC = "config.json as bundled in ai-dynamo/aiconfigurator@095f58a model_configs/"
LITGPT = "Lightning-AI/litgpt litgpt/config.py (copies of the published configs)"
COUNTED = "unconfirmed; its parameters add up to the published count"
GENZ = "GenZ model_sets (a copy of the published config)"


def _sizes(
    layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, positions: int, **more: Any
) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
        **more,
    }


def _llama(*sizes: int, tied: bool = False) -> dict[str, Any]:
    return {"model_type": "llama", "tie_word_embeddings": tied, **_sizes(*sizes)}


def _qwen3(*sizes: int, tied: bool = False) -> dict[str, Any]:
    return {"model_type": "qwen3", "head_dim": 128, "tie_word_embeddings": tied, **_sizes(*sizes)}


def _qwen2(*sizes: int, tied: bool = False) -> dict[str, Any]:
    return {"model_type": "qwen2", "use_sliding_window": False, "tie_word_embeddings": tied, **_sizes(*sizes)}


def _qwen3_moe(*sizes: int, expert_size: int) -> dict[str, Any]:
    moe = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": expert_size}
    return {"model_type": "qwen3_moe", "head_dim": 128, "tie_word_embeddings": False, **_sizes(*sizes), **moe}


def _gpt_oss(layers: int, experts: int) -> dict[str, Any]:
    return {
        "model_type": "gpt_oss",
        "head_dim": 64,
        "attention_bias": True,
        "sliding_window": 128,
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"],
        },
        **_sizes(layers, 2880, 64, 8, 2880, 201088, 131072),
    }


def _deepseek(
    *sizes: int, experts: int, first_dense: int, expert_size: int = 2048, fp8: bool, model_type: str, **more: Any
) -> dict[str, Any]:
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    return {
        "model_type": model_type,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": experts,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "moe_intermediate_size": expert_size,
        "first_k_dense_replace": first_dense,
        "topk_method": "noaux_tc",
        "tie_word_embeddings": False,
        **({"quantization_config": block} if fp8 else {}),
        **_sizes(*sizes),
        **more,
    }


def _gemma3(*sizes: int, head_dim: int) -> dict[str, Any]:
    extra = {"head_dim": head_dim, "sliding_window": 1024, "sliding_window_pattern": 6}
    return {"model_type": "gemma3_text", "tie_word_embeddings": True, **_sizes(*sizes), **extra}


def _llama4(experts: int, step: int, positions: int, *, qk_norm: bool) -> dict[str, Any]:
    return {
        "model_type": "llama4_text",
        "head_dim": 128,
        "intermediate_size_mlp": 16384,
        "interleave_moe_layer_step": step,
        "num_local_experts": experts,
        "num_experts_per_tok": 1,
        "attention_chunk_size": 8192,
        "use_qk_norm": qk_norm,
        "tie_word_embeddings": False,
        **_sizes(48, 5120, 40, 8, 8192, 202048, positions),
    }


QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "head_dim": 256,
    "partial_rotary_factor": 0.25,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    **_sizes(48, 2048, 16, 2, 5120, 151936, 262144),
}

MIXTRAL = {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "tie_word_embeddings": False,
    **_sizes(32, 4096, 32, 8, 14336, 32000, 32768),
}

V3 = _deepseek(
    61, 7168, 128, 128, 18432, 129280, 163840, experts=256, first_dense=3, fp8=True, model_type="deepseek_v3"
)

KNOWN: tuple[Known, ...] = (
    Known("openai/gpt-oss-20b", _gpt_oss(24, 32), AIC, "A"),
    Known("openai/gpt-oss-120b", _gpt_oss(36, 128), AIC, "A"),
    Known("meta-llama/Llama-2-70b", _llama(80, 8192, 64, 8, 28672, 32000, 4096), GENZ, "B"),
    Known("meta-llama/Llama-3.1-8B", _llama(32, 4096, 32, 8, 14336, 128256, 131072), AIC, "A"),
    Known("meta-llama/Llama-3.1-70B", _llama(80, 8192, 64, 8, 28672, 128256, 131072), AIC, "A"),
    Known("meta-llama/Llama-3.3-70B", _llama(80, 8192, 64, 8, 28672, 128256, 131072), AIC, "A"),
    Known("meta-llama/Llama-3.1-405B", _llama(126, 16384, 128, 8, 53248, 128256, 131072), AIC, "A"),
    Known("meta-llama/Llama-4-Scout-17B-16E", _llama4(16, 1, 10485760, qk_norm=True), AIC, "A"),
    Known("meta-llama/Llama-4-Maverick-17B-128E", _llama4(128, 2, 1048576, qk_norm=False), AIC, "A"),
    Known("meta-llama/Llama-3.2-1B", _llama(16, 2048, 32, 8, 8192, 128256, 131072, tied=True), LITGPT, "B"),
    Known("meta-llama/Llama-3.2-3B", _llama(28, 3072, 24, 8, 8192, 128256, 131072, tied=True), LITGPT, "B"),
    Known("mistralai/Mistral-7B-v0.3", _llama(32, 4096, 32, 8, 14336, 32768, 32768), COUNTED, "C"),
    Known("Qwen/Qwen1.5-0.5B", _qwen2(24, 1024, 16, 16, 2816, 151936, 32768, tied=True), COUNTED, "C"),
    Known("Qwen/Qwen2.5-7B", _qwen2(28, 3584, 28, 4, 18944, 152064, 131072), LITGPT, "B"),
    Known("Qwen/Qwen2.5-14B", _qwen2(48, 5120, 40, 8, 13824, 152064, 131072), LITGPT, "B"),
    Known("Qwen/Qwen2.5-32B", _qwen2(64, 5120, 40, 8, 27648, 152064, 131072), LITGPT, "B"),
    Known("Qwen/Qwen2.5-72B", _qwen2(80, 8192, 64, 8, 29568, 152064, 131072), LITGPT, "B"),
    Known("Qwen/Qwen3-0.6B", _qwen3(28, 1024, 16, 8, 3072, 151936, 40960, tied=True), LITGPT, "B"),
    Known("Qwen/Qwen3-1.7B", _qwen3(28, 2048, 16, 8, 6144, 151936, 40960, tied=True), LITGPT, "B"),
    Known("Qwen/Qwen3-4B", _qwen3(36, 2560, 32, 8, 9728, 151936, 40960, tied=True), LITGPT, "B"),
    Known("Qwen/Qwen3-14B", _qwen3(40, 5120, 40, 8, 17408, 151936, 40960), LITGPT, "B"),
    Known("Qwen/Qwen3-32B", _qwen3(64, 5120, 64, 8, 25600, 151936, 40960), LITGPT, "B"),
    Known("Qwen/Qwen3-8B", _qwen3(36, 4096, 32, 8, 12288, 151936, 40960), AIC, "A"),
    Known("Qwen/Qwen3-30B-A3B", _qwen3_moe(48, 2048, 32, 4, 6144, 151936, 40960, expert_size=768), AIC, "A"),
    Known("Qwen/Qwen3-235B-A22B", _qwen3_moe(94, 4096, 64, 4, 12288, 151936, 40960, expert_size=1536), AIC, "A"),
    Known("Qwen/Qwen3-Next-80B-A3B", QWEN3_NEXT, AIC, "A"),
    Known("deepseek-ai/DeepSeek-V3", V3, AIC, "A"),
    Known("deepseek-ai/DeepSeek-R1", V3, AIC, "A"),
    Known(
        "moonshotai/Kimi-K2-Instruct",
        _deepseek(61, 7168, 64, 64, 18432, 163840, 131072, experts=384, first_dense=1, fp8=True, model_type="kimi_k2"),
        AIC + " (block fp8 from the model card)",
        "B",
    ),
    Known("mistralai/Mixtral-8x7B", MIXTRAL, AIC, "A"),
    Known("google/gemma-3-27b", _gemma3(62, 5376, 32, 16, 21504, 262208, 131072, head_dim=128), GENZ, "B"),
    Known("google/gemma-3-12b", _gemma3(48, 3840, 16, 8, 15360, 262208, 131072, head_dim=256), "unconfirmed", "D"),
    Known(
        "microsoft/phi-4",
        {"model_type": "phi3", "tie_word_embeddings": False, **_sizes(40, 5120, 40, 10, 17920, 100352, 16384)},
        "Phi-3-medium in GenZ (same shape); vocabulary and context unconfirmed",
        "C",
    ),
)
"""Models that have a name instead of a config.json."""

QUANTISED_NAME = re.compile(r"-(fp8|int8|awq|gptq|gptq-int4|int4|mxfp4|nvfp4|w4a16|w8a8)(?:-dynamic|-block)?$")
FORMAT_OF_SUFFIX = {"gptq-int4": "gptq", "w4a16": "int4"}
VARIANTS = re.compile(r"-(instruct|chat|base|hf|it|pt|thinking|bf16|fp16|v0\.\d+|\d{4})$")


def known_names() -> list[str]:
    """Return the names of all built-in models."""
    return [entry.name for entry in KNOWN]


def named(name: str) -> Architecture:
    """Return a built-in model by its name.

    Case, the organisation before a ``/``, and endings such as ``-Instruct`` do not matter; an ending such as ``-FP8``
    or ``-AWQ`` changes the weights' format, and the model's notes say so.

    Raises:
        ModelError: there is no such model; the message lists those with similar names.
    """
    stem, suffix = _without_format(_folded(name))
    for wanted in (_folded(name), stem):
        entry = _index().get(_stripped(wanted))
        if entry is not None:
            architecture = _architecture(entry.name)
            return _in_format(architecture, suffix) if suffix and wanted == stem else architecture
    near = difflib.get_close_matches(_stripped(stem), list(_index()), n=4, cutoff=0.5)
    listed = ", ".join(_index()[match].name for match in near) or ", ".join(known_names())
    hint = "similar names are" if near else "built in are"
    raise ModelError(f"model {name[:80]!r} is not built in; {hint} {listed}; or give the path of its config.json")


def load(model: str) -> Architecture:
    """Return a model from the path of a config.json (or its directory) or a built-in name; else raise ModelError."""
    path = Path(model)
    if model.endswith(".json") or path.is_dir() or path.is_file():
        return read_config(path)
    return named(model)


@lru_cache(maxsize=64)
def _architecture(name: str) -> Architecture:
    entry = next(entry for entry in KNOWN if entry.name == name)
    return architecture_of(entry.config, name=name, source=f"built in, confidence {entry.confidence}: {entry.source}")


@lru_cache(maxsize=1)
def _index() -> dict[str, Known]:
    return {_stripped(_folded(entry.name)): entry for entry in KNOWN}


def _folded(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower()).rstrip("/")


def _stripped(folded: str) -> str:
    """Return a name without organisation and variant endings, which do not change the shape."""
    stem = folded.rsplit("/", 1)[-1].removeprefix("meta-")
    while (shorter := VARIANTS.sub("", stem)) != stem:
        stem = shorter
    return re.sub(r"^(llama|qwen|gemma|phi)-?(\d)", r"\1-\2", stem)


def _without_format(folded: str) -> tuple[str, str | None]:
    suffix = QUANTISED_NAME.search(folded)
    return (folded[: suffix.start()], suffix[1]) if suffix else (folded, None)


def _in_format(architecture: Architecture, suffix: str) -> Architecture:
    chosen = format_named(FORMAT_OF_SUFFIX.get(suffix, suffix))
    if chosen is None:
        return architecture
    note = f"weights in {chosen.name}, from the ending -{suffix} of its name; give its config.json to be sure"
    changed = with_formats(architecture, weights=chosen)
    return replace(changed, notes=(*changed.notes, note))
