"""What a ``model_type`` implies that its config.json does not say: the conventions of each family, as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceanalyzer.model.architecture import Conventions


@dataclass(frozen=True)
class Family(Conventions):
    """Conventions of one ``model_type``; keys of a config take precedence over all of them.

    Attributes:
        sliding: pattern of sliding layers unless the config lists them: ``all``, ``from`` (layers from
            max_window_layers on), or a period N whose last layer is full.
        moe_bias: whether router and experts have biases.
        fused_activation: whether engines apply the activation in the experts' gate_up kernel.
        routing_kernels: kernels that route tokens to experts in the usual engine.
        shared_gate: whether the shared expert is gated.
    """

    sliding: str | int | None = None
    moe_bias: bool = False
    fused_activation: bool = False
    routing_kernels: int | None = None
    shared_gate: bool = False


LLAMA = Family()
QWEN2 = Family(qkv_bias=True, sliding="from")
QWEN3 = Family(qk_norm="head", sliding="from")
LAYER_NORM = Family(gated=False, qkv_bias=True, o_bias=True, mlp_bias=True, norm_bias=True)

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "llama4_text": LLAMA,
    "llama4": LLAMA,
    "mistral": Family(sliding="all"),
    "ministral": Family(sliding="all"),
    "mistral3": Family(sliding="all"),
    "mixtral": Family(sliding="all"),
    "qwen2": QWEN2,
    "qwen2_moe": Family(qkv_bias=True, sliding="from", shared_gate=True),
    "qwen2_vl": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen3": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_next": Family(qk_norm="head", attention_gate=True, shared_gate=True),
    "qwen3_5_moe_text": Family(qk_norm="head", attention_gate=True, shared_gate=True),
    "gemma": Family(tied=True),
    "gemma2": Family(tied=True, norms_after=True, sliding=2),
    "gemma3_text": Family(tied=True, norms_after=True, qk_norm="head", sliding=6),
    "gemma3": Family(tied=True, norms_after=True, qk_norm="head", sliding=6),
    "cohere": Family(tied=True, parallel_block=True),
    "cohere2": Family(tied=True, parallel_block=True, sliding=4),
    "phi": replace(LAYER_NORM, parallel_block=True),
    "phi3": Family(sliding="all"),
    "phimoe": Family(qkv_bias=True, o_bias=True, norm_bias=True, sliding="all"),
    "gpt_oss": Family(
        qkv_bias=True, o_bias=True, sinks=True, sliding=2, moe_bias=True, fused_activation=True, routing_kernels=4
    ),
    "deepseek_v2": LLAMA,
    "deepseek_v3": LLAMA,
    "deepseek_v32": LLAMA,
    "kimi_k2": LLAMA,
    "glm4": Family(qkv_bias=True, norms_after=True),
    "minimax_m2": Family(qk_norm="all"),
    "glm4_moe": Family(qkv_bias=True, qk_norm="head"),
    "ernie4_5_moe": LLAMA,
    "granite": Family(tied=True),
    "granitemoe": Family(tied=True),
    "granitemoehybrid": Family(tied=True),
    "olmoe": Family(qk_norm="all"),
    "olmo2": Family(qk_norm="all"),
    "mamba": Family(tied=True),
    "mamba2": LLAMA,
    "falcon_mamba": Family(tied=True),
    "jamba": LLAMA,
    "bamba": LLAMA,
    "nemotron": Family(gated=False, norm_bias=True),
    "nemotron_h": Family(gated=False),
    "starcoder2": replace(LAYER_NORM, tied=True, sliding="all"),
    "gpt_neox": replace(LAYER_NORM, parallel_block=True),
    "gpt2": replace(LAYER_NORM, tied=True),
    "opt": replace(LAYER_NORM, tied=True),
}
"""``model_type`` -> family. Source: the model classes of transformers 4.5x, by their behaviour."""

DEFAULTS: dict[str, dict[str, int]] = {
    "gemma2": {"vocab_size": 256000, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
    "gemma3_text": {"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
}
"""``model_type`` -> defaults in the config classes of transformers for keys that published configs leave out."""
