"""An Architecture from a local config.json of Hugging Face; nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from traceanalyzer.model.architecture import (
    RECURRENT,
    SOFTMAX_ATTENTION,
    Architecture,
    Conventions,
    Layer,
    Mla,
    ModelError,
    Moe,
)
from traceanalyzer.model.config_keys import Keys
from traceanalyzer.model.families import DEFAULTS, FAMILIES, LLAMA, Family
from traceanalyzer.model.formats import BF16, format_named
from traceanalyzer.model.layers import ATTENTION_WORDS, EXPERT_KEYS, layers_of, mixer_of
from traceanalyzer.model.quantisation import quantised

MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""A larger file is no config.json; chosen, not fitted."""

NOT_MODELLED = {
    "index_topk": "sparse attention (an indexer picks tokens) is modelled as full attention, an upper bound",
    "num_nextn_predict_layers": "layers for multi-token prediction are not counted",
    "mtp_num_hidden_layers": "layers for multi-token prediction are not counted",
    "vision_config": "only the language model is described, not the vision tower",
    "num_kv_shared_layers": "layers that share a KV cache are modelled as if each had its own",
    "cross_attention_layers": "cross-attention layers are modelled as self-attention",
}
"""Config keys of what this description leaves out -> note."""

STATE_KEYS = ("mamba_d_state", "ssm_state_size", "state_size", "linear_num_value_heads", "linear_attn_config")


def read_config(path: str | Path) -> Architecture:
    """Read a config.json, or that of a model directory (with ModelOpt's hf_quant_config.json beside it).

    Raises:
        ModelError: the file cannot be read, is not an object, or lacks what is needed.
    """
    file = Path(path)
    folder = file if file.is_dir() else file.parent
    file = folder / "config.json" if file.is_dir() else file
    config = _load(file)
    beside = folder / "hf_quant_config.json"
    if "quantization_config" not in config and beside.is_file():
        config = {**config, "quantization_config": _load(beside).get("quantization")}
    name = str(config.get("_name_or_path") or file.resolve().parent.name)
    try:
        return architecture_of(config, name=name, source=file.name)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def _load(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ModelError(f"{file}: larger than a config.json can be")
        loaded = json.loads(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: not valid JSON ({error})") from error
    if not isinstance(loaded, dict):
        raise ModelError(f"{file}: must hold an object")
    return loaded


def architecture_of(config: Mapping[str, Any], *, name: str | None = None, source: str = "config") -> Architecture:
    """Derive an architecture from a config's keys.

    A ``text_config`` in it takes precedence. ModelError names a missing or absurd key.
    """
    inner = config.get("text_config")
    text = {**_outer(config), **inner} if isinstance(inner, Mapping) else dict(config)
    model_type = str(text.get("model_type") or "")
    left_out = {key: value for key, value in DEFAULTS.get(model_type, {}).items() if text.get(key) is None}
    keys = Keys({**text, **left_out})
    notes = _family_notes(model_type)
    notes += [note for key, note in NOT_MODELLED.items() if config.get(key) or text.get(key)]
    notes += [f"{key} is missing; assumed {value}, the default of {model_type}" for key, value in left_out.items()]
    base = format_named(str(keys.get("torch_dtype", "dtype") or "bfloat16")) or BF16
    weights, kv, assumed = quantised(text, base)
    architecture = _assemble(keys, model_type, FAMILIES.get(model_type, LLAMA), name or model_type or "unnamed", source)
    notes += _unplaced(keys, architecture)
    return replace(architecture, weights=weights, activation=base, kv=kv, notes=(*notes, *assumed))


def _family_notes(model_type: str) -> list[str]:
    if model_type in FAMILIES:
        return []
    shown = f"unknown model_type {model_type[:40]!r}" if model_type else "no model_type"
    return [f"{shown}: derived from its keys with the conventions of Llama"]


def _unplaced(keys: Keys, architecture: Architecture) -> list[str]:
    """Return notes about parts of the model whose place or size is unknown."""
    kinds = {layer.attention for layer in architecture.layers}
    recurrent = not kinds.isdisjoint(RECURRENT)
    listed = keys.get("layer_types") or keys.get("layers_block_type") or ()
    unknown = sorted({str(word)[:40] for word in listed if str(word) not in ATTENTION_WORDS})
    facts = {
        "recurrent layers of unknown size": recurrent and not architecture.mixer,
        "keys of recurrent layers, but none says which layers they are": not recurrent and keys.has(*STATE_KEYS),
        f"unknown kinds of attention: {', '.join(unknown)}": "other" in kinds,
    }
    return [note for note, holds in facts.items() if holds]


def _outer(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that multimodal configs have outside of ``text_config``."""
    shared = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "compression_config", "model_type")
    return {key: config[key] for key in shared if key in config}


def _assemble(keys: Keys, model_type: str, family: Family, name: str, source: str) -> Architecture:
    hidden = keys.size("hidden_size", "n_embd", "d_model")
    mla = _mla(keys)
    layers = layers_of(keys, model_type, family, mla=mla is not None)
    heads, kv_heads, head_dim = _heads(keys, hidden, layers, mla)
    conventions = {field.name: getattr(family, field.name) for field in fields(Conventions)}
    conventions |= {
        "tied": keys.flag("tie_word_embeddings", default=family.tied),
        "qkv_bias": keys.flag("attention_bias", "qkv_bias", "use_bias", "use_qkv_bias", default=family.qkv_bias),
        "o_bias": _o_bias(keys, family),
        "mlp_bias": keys.flag("mlp_bias", default=family.mlp_bias),
        "qk_norm": _qk_norm(keys, model_type, family),
        "attention_gate": keys.flag("attn_output_gate", default=family.attention_gate),
    }
    return Architecture(
        **conventions,
        name=name,
        model_type=model_type,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=keys.size("vocab_size"),
        rotary_dim=_rotary_dim(keys, head_dim, mla),
        max_positions=keys.optional_size("max_position_embeddings", "n_positions"),
        moe=_moe(keys, model_type, family) if any(layer.ffn == "moe" for layer in layers) else None,
        mla=mla,
        mixer=mixer_of(keys, hidden) if any(layer.attention in RECURRENT for layer in layers) else None,
        source=source,
    )


def _heads(keys: Keys, hidden: int, layers: tuple[Layer, ...], mla: Mla | None) -> tuple[int, int, int]:
    if not any(layer.attention in SOFTMAX_ATTENTION for layer in layers):
        return 0, 0, 0
    heads = keys.size("num_attention_heads", "n_head", "n_heads")
    kv_heads = keys.size("num_key_value_heads", "num_kv_heads", default=heads)
    if heads % kv_heads and mla is None:
        raise ModelError(f"num_key_value_heads = {kv_heads} does not divide num_attention_heads = {heads}")
    if mla is not None:
        return heads, kv_heads, mla.v
    head_dim = keys.optional_size("head_dim", "attention_head_dim")
    if head_dim is None and hidden % heads:
        raise ModelError(
            f"num_attention_heads = {heads} does not divide hidden_size = {hidden}, and there is no head_dim"
        )
    return heads, kv_heads, head_dim or hidden // heads


def _mla(keys: Keys) -> Mla | None:
    if not keys.has("kv_lora_rank"):
        return None
    return Mla(
        q_rank=keys.optional_size("q_lora_rank"),
        kv_rank=keys.size("kv_lora_rank"),
        nope=keys.size("qk_nope_head_dim"),
        rope=keys.size("qk_rope_head_dim"),
        v=keys.size("v_head_dim"),
    )


def _moe(keys: Keys, model_type: str, family: Family) -> Moe:
    experts = keys.size(*EXPERT_KEYS)
    top_k = keys.size(
        "num_experts_per_tok", "experts_per_token", "moe_topk", "top_k_experts", "moe_k", "num_experts_per_token"
    )
    if top_k > experts:
        raise ModelError(f"num_experts_per_tok = {top_k} exceeds the {experts} experts")
    size = keys.size("moe_intermediate_size", "intermediate_size")
    shared, shared_size = _shared(keys, model_type, size)
    return Moe(
        experts=experts,
        top_k=top_k,
        expert_size=size,
        shared_experts=shared,
        shared_size=shared_size,
        shared_gate=family.shared_gate and shared > 0,
        router_bias=family.moe_bias or keys.get("topk_method") == "noaux_tc",
        expert_bias=family.moe_bias,
        fused_activation=family.fused_activation,
        routing_kernels=family.routing_kernels,
    )


def _shared(keys: Keys, model_type: str, expert_size: int) -> tuple[int, int]:
    """Return the number of shared experts and their total width."""
    width = keys.optional_size(
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"
    )
    count = keys.optional_size("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    if model_type.startswith("llama4"):
        return 1, keys.size("intermediate_size")
    if width is not None:
        return count or 1, width * (count or 1)
    return (count, count * expert_size) if count else (0, 0)


def _o_bias(keys: Keys, family: Family) -> bool:
    """Qwen2 and GLM have a bias on QKV only; in other families, ``attention_bias`` means both projections."""
    both = not family.qkv_bias or family.o_bias
    return keys.flag("attention_bias", "use_bias", default=family.o_bias) if both else False


def _qk_norm(keys: Keys, model_type: str, family: Family) -> str | None:
    if keys.get("use_qk_norm") is False or keys.get("qk_layernorm") is False:
        return None
    if model_type.startswith("llama4"):
        # Llama 4 normalises queries and keys without weights; the kernels exist anyway.
        return "head" if keys.get("use_qk_norm") else None
    if model_type == "glm4_moe" and not keys.get("use_qk_norm"):
        return None
    return family.qk_norm or ("head" if keys.get("use_qk_norm") or keys.get("qk_layernorm") else None)


def _rotary_dim(keys: Keys, head_dim: int, mla: Mla | None) -> int:
    if mla is not None:
        return mla.rope
    share = keys.get("partial_rotary_factor", "rotary_pct")
    return int(head_dim * share) if isinstance(share, int | float) and 0 < share <= 1 else head_dim
