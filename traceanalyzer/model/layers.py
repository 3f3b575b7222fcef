"""The layers of a model: full or sliding attention, recurrent, dense or MoE, and the sizes of recurrent ones."""

from __future__ import annotations

import math

from traceanalyzer.model.architecture import Layer, Mixer, ModelError
from traceanalyzer.model.config_keys import Keys
from traceanalyzer.model.families import Family

ATTENTION_WORDS = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "global_attention": "full",
    "sliding_attention": "sliding",
    "sliding": "sliding",
    "local": "sliding",
    "local_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mamba2": "mamba",
    "hybrid": "full",
}
"""Entries of ``layer_types`` (and older names of it) -> attention kind."""

MOST_LAYERS = 10_000
"""A larger count is a mistake; chosen, not fitted."""

ONLY_MAMBA = frozenset({"mamba", "mamba2", "falcon_mamba"})
"""``model_type`` of models whose blocks are only a recurrent layer."""

HYBRID_LETTERS: dict[str, tuple[str | None, str | None]] = {
    "M": ("mamba", None),
    "*": ("full", None),
    "-": (None, "dense"),
    "E": (None, "moe"),
}
"""Letters of Nemotron-H's ``hybrid_override_pattern`` -> (attention, FFN): each part is a layer of its own there."""


def layers_of(keys: Keys, model_type: str, family: Family, *, mla: bool) -> tuple[Layer, ...]:
    """Return the model's layers; ModelError names a missing or absurd key."""
    count = keys.size("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if count > MOST_LAYERS:
        raise ModelError(f"num_hidden_layers = {count} is more than a model can have")
    attention = _attention(keys, model_type, family, count)
    if mla:
        attention = ["mla" if kind == "full" else kind for kind in attention]
    ffn = _ffn(keys, model_type, count)
    letters = keys.per_layer("hybrid_override_pattern", count)
    if letters:
        unknown = sorted(set(map(str, letters)) - set(HYBRID_LETTERS))
        if unknown:
            raise ModelError(f"hybrid_override_pattern has unknown letters: {' '.join(unknown)}")
        attention, ffn = map(list, zip(*(HYBRID_LETTERS[letter] for letter in letters), strict=True))
    window = _window(keys, attention)
    dense_size = _dense_size(keys, model_type) if "dense" in ffn else None
    rotated = _rotated(keys, model_type, count)
    return tuple(
        Layer(
            attention=attention[i],
            ffn=ffn[i],
            window=window if attention[i] in ("sliding", "chunked") else None,
            ffn_size=dense_size if ffn[i] == "dense" else None,
            rope=rotated[i],
        )
        for i in range(count)
    )


def _attention(keys: Keys, model_type: str, family: Family, count: int) -> list[str | None]:
    listed = keys.per_layer("layer_types", count) or keys.per_layer("layers_block_type", count)
    if listed:
        return [ATTENTION_WORDS.get(str(word), "other") for word in listed]
    return _recurrent(keys, model_type, count) or _sliding(keys, model_type, family, count)


def _recurrent(keys: Keys, model_type: str, count: int) -> list[str | None] | None:
    """Return the kinds of layers of a model with recurrent ones; None for other models."""
    full: frozenset[int]
    if model_type in ONLY_MAMBA:
        full, other = frozenset(), "mamba"
    elif keys.has("full_attention_interval"):
        period = keys.size("full_attention_interval")
        full, other = frozenset(range(period - 1, count, period)), "linear"
    elif keys.has("attn_layer_period"):
        full = frozenset(range(keys.count("attn_layer_offset"), count, keys.size("attn_layer_period")))
        other = "mamba"
    elif keys.has("attn_layer_indices"):
        full, other = keys.indices("attn_layer_indices", count), "mamba"
    elif keys.has("attn_type_list"):
        kinds = keys.per_layer("attn_type_list", count) or []
        full, other = frozenset(i for i, kind in enumerate(kinds) if kind == 1), "linear"
    else:
        return None
    return ["full" if i in full else other for i in range(count)]


def _sliding(keys: Keys, model_type: str, family: Family, count: int) -> list[str | None]:
    if model_type.startswith("llama4"):
        return ["chunked" if rotated else "full" for rotated in _rotated(keys, model_type, count)]
    if not _has_window(keys, family):
        return ["full"] * count
    given = keys.optional_size("sliding_window_pattern", "_sliding_window_pattern")
    pattern = given or family.sliding
    if pattern == "from" or (pattern is None and keys.has("max_window_layers")):
        first = keys.count("max_window_layers")
        return ["sliding" if i >= first else "full" for i in range(count)]
    if isinstance(pattern, int):
        return ["full" if (i + 1) % pattern == 0 else "sliding" for i in range(count)]
    return ["sliding"] * count


def _has_window(keys: Keys, family: Family) -> bool:
    """Whether any layer attends to less than the longest context."""
    window = keys.optional_size("sliding_window")
    longest = keys.optional_size("max_position_embeddings")
    if window is None or (longest is not None and window >= longest):
        return False
    # Qwen's switch is off unless it is set; other families have no such key.
    return keys.flag("use_sliding_window", default=family.sliding != "from")


def _window(keys: Keys, attention: list[str | None]) -> int | None:
    if "sliding" in attention:
        return keys.size("sliding_window")
    return keys.size("attention_chunk_size", default=8192) if "chunked" in attention else None


def _rotated(keys: Keys, model_type: str, count: int) -> list[bool]:
    """Llama 4 has no RoPE in every fourth layer; ``no_rope_layers`` has a 1 where a layer has RoPE."""
    listed = keys.per_layer("no_rope_layers", count)
    if listed:
        return [bool(entry) for entry in listed]
    if not model_type.startswith("llama4"):
        return [True] * count
    interval = keys.size("no_rope_layer_interval", default=4)
    return [(i + 1) % interval != 0 for i in range(count)]


def _ffn(keys: Keys, model_type: str, count: int) -> list[str | None]:
    if model_type in ONLY_MAMBA:
        return [None] * count
    if not has_experts(keys):
        return ["dense"] * count
    if keys.has("moe_layers"):
        chosen = keys.indices("moe_layers", count)
    elif keys.has("interleave_moe_layer_step"):
        step = keys.size("interleave_moe_layer_step")
        chosen = frozenset(range(step - 1, count, step))
    elif keys.has("expert_layer_period"):
        period, offset = keys.size("expert_layer_period"), keys.count("expert_layer_offset")
        chosen = frozenset(i for i in range(count) if i % period == offset)
    elif keys.has("moe_layer_start_index"):
        first, every = keys.count("moe_layer_start_index"), keys.size("moe_layer_interval", default=1)
        last = keys.get("moe_layer_end_index")
        end = last if isinstance(last, int) and 0 <= last < count else count - 1
        chosen = frozenset(i for i in range(first, end + 1) if (i + 1) % every == 0)
    else:
        chosen = _sparse(keys, count)
    return ["moe" if i in chosen else "dense" for i in range(count)]


def _sparse(keys: Keys, count: int) -> frozenset[int]:
    first_dense = keys.count("first_k_dense_replace")
    frequency = keys.get("moe_layer_freq")
    if isinstance(frequency, list):
        return frozenset(i for i, sparse in enumerate(frequency[:count]) if sparse)
    every = keys.size("moe_layer_freq", default=1)
    step = keys.size("decoder_sparse_step", default=1)
    dense = keys.indices("mlp_only_layers", count)
    return frozenset(
        i for i in range(count) if i >= first_dense and i % every == 0 and (i + 1) % step == 0 and i not in dense
    )


EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def has_experts(keys: Keys) -> bool:
    """Whether the config describes a mixture of more than one expert."""
    count = keys.get(*EXPERT_KEYS)
    return isinstance(count, int) and count > 1


def _dense_size(keys: Keys, model_type: str) -> int:
    if model_type.startswith("llama4"):
        return keys.size("intermediate_size_mlp", "intermediate_size")
    if keys.has("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"):
        return keys.size("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
    if model_type in ("gpt2", "gpt_neox"):
        return 4 * keys.size("hidden_size", "n_embd")
    return keys.size("intermediate_size")


def mixer_of(keys: Keys, hidden: int) -> Mixer | None:
    """Return the sizes of recurrent layers; None where the keys do not tell them."""
    return next((mixer for read in (_gated_delta, _mamba2, _mamba) if (mixer := read(keys, hidden))), None)


def _gated_delta(keys: Keys, hidden: int) -> Mixer | None:
    """Qwen3-Next: one projection to q, k, v and the gate z, one to two scalars per value head."""
    if not keys.has("linear_num_value_heads"):
        return None
    key_heads, value_heads = keys.size("linear_num_key_heads"), keys.size("linear_num_value_heads")
    key_dim, value_dim = keys.size("linear_key_head_dim"), keys.size("linear_value_head_dim")
    keys_width, values_width = key_heads * key_dim, value_heads * value_dim
    channels, taps = 2 * keys_width + values_width, keys.size("linear_conv_kernel_dim", default=4)
    return Mixer(
        kind="gated_delta",
        inputs=2 * keys_width + 2 * values_width + 2 * value_heads,
        inner=values_width,
        conv_channels=channels,
        conv_width=taps,
        state=value_heads * key_dim * value_dim,
        other_parameters=channels * taps + 2 * value_heads + value_dim,
    )


def _mamba2(keys: Keys, hidden: int) -> Mixer | None:
    """Mamba-2: one projection to z, x, B, C and dt. Its own configs name the keys of heads without a prefix."""
    bare = keys.get("model_type") == "mamba2"
    named = ("mamba_num_heads", "mamba_n_heads", *(("num_heads",) if bare else ()))
    if not keys.has(*named):
        return None
    heads = keys.size(*named)
    expand = keys.size("expand", "mamba_expand", default=2)
    width = ("mamba_head_dim", "mamba_d_head", *(("head_dim",) if bare else ()))
    head_dim = keys.optional_size(*width) if isinstance(keys.get(*width), int) else None
    inner = heads * head_dim if head_dim else expand * hidden
    state = keys.size("ssm_state_size", "mamba_d_state", "state_size")
    groups = keys.size("n_groups", "mamba_n_groups", default=1)
    channels, taps = inner + 2 * groups * state, keys.size("conv_kernel", "mamba_d_conv", default=4)
    return Mixer(
        kind="mamba2",
        inputs=2 * inner + 2 * groups * state + heads,
        inner=inner,
        conv_channels=channels,
        conv_width=taps,
        state=inner * state,
        other_parameters=channels * (taps + 1) + 3 * heads + inner,
    )


def _mamba(keys: Keys, hidden: int) -> Mixer | None:
    """Mamba-1: a projection to x and z; from x then dt, B and C."""
    if not keys.has("mamba_d_state", "state_size"):
        return None
    state, taps = keys.size("mamba_d_state", "state_size"), keys.size("mamba_d_conv", "conv_kernel", default=4)
    inner = keys.size("mamba_expand", "expand", default=2) * hidden
    given = keys.get("mamba_dt_rank", "time_step_rank")
    rank = given if isinstance(given, int) else math.ceil(hidden / 16)
    norms = rank + 2 * state
    return Mixer(
        kind="mamba",
        inputs=2 * inner,
        inner=inner,
        conv_channels=inner,
        conv_width=taps,
        state=inner * state,
        other_parameters=inner * (taps + 1)
        + inner * (rank + 2 * state)
        + (rank + 1) * inner
        + inner * (state + 1)
        + norms,
    )
