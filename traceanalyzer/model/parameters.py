"""Parameters of a model, those that a token uses, and the bytes of weights and KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traceanalyzer.model.architecture import RECURRENT, SOFTMAX_ATTENTION, Architecture, Layer, Mixer, Mla, Moe
from traceanalyzer.model.formats import BF16, Format


@dataclass(frozen=True)
class Tensor:
    """Weights of one class in one layer.

    Attributes:
        part: ``embedding``, ``lm_head``, ``attention``, ``mixer``, ``ffn``, ``experts``, ``shared``, ``router``
            or ``norm``.
        layer: the layer's number; None outside of layers.
        count: parameters; None where unknown.
        active: parameters that one token uses.
        format: how they are stored.
        parts: into how many parts tensor parallelism can split them; more ranks hold copies. None for any number.
    """

    part: str
    layer: int | None
    count: int | None
    active: int | None
    format: Format
    parts: int | None = None


@dataclass(frozen=True)
class Parameters:
    """A model's parameters and bytes.

    Attributes:
        total: all parameters, lm_head only if it is not the embedding; None where a part is unknown.
        active: parameters that one token uses, with lm_head but without the input embedding, of which one row is read.
        weight_bytes: stored bytes, scales included.
        by_part: parameters of each part.
    """

    total: int | None
    active: int | None
    weight_bytes: float | None
    by_part: dict[str, int | None]


def parameters(architecture: Architecture) -> Parameters:
    """Count a model's parameters. Multi-token-prediction layers and vision towers are not counted."""
    parts = list(tensors(architecture))
    by_part: dict[str, int | None] = {}
    for part in dict.fromkeys(tensor.part for tensor in parts):
        by_part[part] = _sum(tensor.count for tensor in parts if tensor.part == part)
    bytes_of = [None if tensor.count is None else tensor.count * tensor.format.bytes for tensor in parts]
    return Parameters(
        total=_sum(tensor.count for tensor in parts),
        active=_sum(tensor.active for tensor in parts),
        weight_bytes=None if None in bytes_of else sum(size for size in bytes_of if size is not None),
        by_part=by_part,
    )


def tensors(architecture: Architecture) -> Iterator[Tensor]:
    """Yield the weights of a model, class by class and layer by layer."""
    a, w = architecture, architecture.weights
    table = a.vocab * a.hidden
    yield Tensor("embedding", None, table, table if a.tied else 0, w.embedding)
    for number, layer in enumerate(a.layers):
        yield from _layer(a, number, layer)
    yield _plain("norm", None, a.hidden * (2 if a.norm_bias else 1))
    if not a.tied:
        yield Tensor("lm_head", None, table, table, w.lm_head)


def _layer(a: Architecture, number: int, layer: Layer) -> Iterator[Tensor]:
    w = a.weights
    if layer.attention in SOFTMAX_ATTENTION:
        latent = a.mla if layer.attention == "mla" else None
        # A latent has no heads to split; keys and values can only be split by heads.
        few, parts = (mla_down_weights(a, latent), 1) if latent else (kv_weights(a), a.kv_heads)
        count = mla_head_weights(a, latent) if latent else gqa_weights(a) - few
        yield Tensor("attention", number, few, few, w.attention, parts)
        yield Tensor("attention", number, count, count, w.attention)
        yield _plain("norm", number, _attention_extras(a))
    elif layer.attention is not None:
        known = a.mixer if layer.attention in RECURRENT else None
        count_or_none = mixer_weights(a, known) if known else None
        yield Tensor("mixer", number, count_or_none, count_or_none, w.attention)
    if layer.ffn == "dense" and layer.ffn_size is not None:
        count = ffn_weights(a, layer.ffn_size)
        yield Tensor("ffn", number, count, count, w.ffn)
        yield _plain("norm", number, (layer.ffn_size * (2 if a.gated else 1) + a.hidden) if a.mlp_bias else 0)
    elif layer.ffn == "moe" and a.moe is not None:
        yield from _experts(a, a.moe, number)
    yield _plain("norm", number, norms_of(a, layer) * a.hidden * (2 if a.norm_bias else 1))


def _experts(a: Architecture, moe: Moe, number: int) -> Iterator[Tensor]:
    w = a.weights
    one = ffn_weights(a, moe.expert_size)
    yield Tensor("experts", number, moe.experts * one, moe.top_k * one, w.experts)
    router = a.hidden * moe.experts + (moe.experts if moe.router_bias else 0)
    yield Tensor("router", number, router, router, w.router, parts=1)
    if moe.shared_size:
        shared = ffn_weights(a, moe.shared_size)
        yield Tensor("shared", number, shared, shared, w.shared)
        yield _plain("router", number, a.hidden if moe.shared_gate else 0)
    if moe.expert_bias:
        bias = moe.expert_size * (2 if a.gated else 1) + a.hidden
        yield Tensor("experts", number, moe.experts * bias, moe.top_k * bias, a.activation)


def _plain(part: str, layer: int | None, count: int) -> Tensor:
    return Tensor(part, layer, count, count, BF16, parts=1)


def norms_of(architecture: Architecture, layer: Layer) -> int:
    """Return how many norms over the hidden width a layer has."""
    parts = sum(1 for part in (layer.attention, layer.ffn) if part)
    before = 1 if architecture.parallel_block and parts else parts
    return before + (parts if architecture.norms_after else 0)


def gqa_weights(a: Architecture) -> int:
    """Return the weights of QKV and output projection (and of the gate, where there is one)."""
    queries = a.heads * a.head_dim
    return a.hidden * (qkv_width(a) + queries)


def kv_weights(a: Architecture) -> int:
    """Return the weights of the projections to keys and values."""
    return 2 * a.hidden * a.kv_heads * a.head_dim


def qkv_width(a: Architecture) -> int:
    """Return the width of the QKV projection's output: (H + 2G) h, and H h more for a gate."""
    return (a.heads * (2 if a.attention_gate else 1) + 2 * a.kv_heads) * a.head_dim


def _attention_extras(a: Architecture) -> int:
    bias = (qkv_width(a) if a.qkv_bias else 0) + (a.hidden if a.o_bias else 0)
    norms = {None: 0, "head": 2 * a.head_dim, "all": (a.heads + a.kv_heads) * a.head_dim}[a.qk_norm]
    lora = (a.mla.q_rank or 0) + a.mla.kv_rank if a.mla else 0
    return (0 if a.mla else bias + norms) + lora + (a.heads if a.sinks else 0)


def mla_down_weights(a: Architecture, mla: Mla) -> int:
    """Return the weights of the projections to the latents, which cannot be split by heads."""
    return a.hidden * ((mla.q_rank or 0) + mla.kv_rank + mla.rope)


def mla_head_weights(a: Architecture, mla: Mla) -> int:
    """Return the weights of the projections from the latents to the heads, and from the heads to the output."""
    queries = a.heads * (mla.nope + mla.rope)
    return (mla.q_rank or a.hidden) * queries + a.heads * (mla.kv_rank * (mla.nope + mla.v) + mla.v * a.hidden)


def mixer_weights(a: Architecture, mixer: Mixer) -> int:
    """Return the weights of a recurrent layer."""
    return a.hidden * (mixer.inputs + mixer.inner) + mixer.other_parameters


def ffn_weights(a: Architecture, size: int) -> int:
    """Return the weights of an FFN of this width: 3 d f when gated, else 2 d f."""
    return (3 if a.gated else 2) * a.hidden * size


def kv_values(architecture: Architecture, layer: Layer) -> int:
    """Return the values of one token in a layer's KV cache: 2 G h, or the latent and the rotated key."""
    if layer.attention not in SOFTMAX_ATTENTION:
        return 0
    mla = architecture.mla
    return (
        mla.kv_rank + mla.rope
        if mla and layer.attention == "mla"
        else 2 * architecture.kv_heads * architecture.head_dim
    )


def kv_bytes_per_token(architecture: Architecture) -> float:
    """Return the bytes of one token in the KV cache of all layers, regardless of windows."""
    return sum(kv_values(architecture, layer) for layer in architecture.layers) * architecture.kv.bytes


def kv_bytes(architecture: Architecture, context: int) -> float:
    """Return the bytes of a sequence of ``context`` tokens in the KV cache, at most a window per layer."""
    kept = (
        kv_values(architecture, layer) * min(context, layer.window if layer.window is not None else context)
        for layer in architecture.layers
    )
    return sum(kept) * architecture.kv.bytes


def state_bytes(architecture: Architecture) -> float | None:
    """Return the bytes of one sequence's recurrent state (kept in fp32) and convolution; None where unknown."""
    recurrent = sum(1 for layer in architecture.layers if layer.attention in RECURRENT)
    mixer = architecture.mixer
    if not recurrent:
        return 0.0
    if mixer is None:
        return None
    return recurrent * (
        mixer.state * 4.0 + mixer.conv_channels * (mixer.conv_width - 1) * architecture.activation.bytes
    )


def _sum(values: Iterator[int | None]) -> int | None:
    counts = list(values)
    return None if any(value is None for value in counts) else sum(value for value in counts if value is not None)
