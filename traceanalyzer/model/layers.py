"""Which kind each layer of a model is: full or sliding attention, recurrent, dense or MoE."""

from __future__ import annotations

from traceanalyzer.model.architecture import Layer, ModelError
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

ONLY_MAMBA = frozenset({"mamba", "mamba2", "falcon_mamba"})
"""``model_type`` of models whose blocks are a recurrent layer and nothing else."""

HYBRID_LETTERS: dict[str, tuple[str | None, str | None]] = {
    "M": ("mamba", None),
    "*": ("full", None),
    "-": (None, "dense"),
    "E": (None, "moe"),
}
"""Letters of Nemotron-H's ``hybrid_override_pattern`` -> (attention, FFN): there each part is a layer of its own."""


def layers_of(keys: Keys, model_type: str, family: Family, *, mla: bool) -> tuple[Layer, ...]:
    """Return the model's layers.

    Raises:
        ModelError: a key about layers is missing or absurd.
    """
    count = keys.size("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if count > MOST_LAYERS:
        raise ModelError(f"num_hidden_layers = {count} is more than a model can have")
    attention = _attention(keys, model_type, family, count)
    if mla:
        attention = ["mla" if kind == "full" else kind for kind in attention]
    ffn = _ffn(keys, model_type, count)
    letters = keys.one_a_layer("hybrid_override_pattern", count)
    if letters:
        unknown = sorted(set(map(str, letters)) - set(HYBRID_LETTERS))
        if unknown:
            raise ModelError(f"hybrid_override_pattern has letters that are not known: {' '.join(unknown)}")
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
    listed = keys.one_a_layer("layer_types", count) or keys.one_a_layer("layers_block_type", count)
    if listed:
        return [ATTENTION_WORDS.get(str(word), "other") for word in listed]
    return _recurrent(keys, model_type, count) or _sliding(keys, model_type, family, count)


def _recurrent(keys: Keys, model_type: str, count: int) -> list[str | None] | None:
    """Return the layers of a model that mixes attention with recurrent layers; None for others."""
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
        kinds = keys.one_a_layer("attn_type_list", count) or []
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
    """Llama 4 leaves every fourth layer without rotation; ``no_rope_layers`` has a 1 where a layer is rotated."""
    listed = keys.one_a_layer("no_rope_layers", count)
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
