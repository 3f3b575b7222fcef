"""What an LLM is made of, as far as its speed depends on it: layer kinds, sizes and number formats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from traceanalyzer.model.formats import BF16, Format

SOFTMAX_ATTENTION = ("full", "sliding", "chunked", "mla")
"""Attention kinds that keep a KV cache."""

RECURRENT = ("mamba", "linear")
"""Attention kinds that keep a state of fixed size instead."""


class ModelError(ValueError):
    """A model cannot be described: one line that names the missing or absurd key, or the unknown name."""


@dataclass(frozen=True)
class Layer:
    """One transformer block.

    Attributes:
        attention: ``full``, ``sliding``, ``chunked``, ``mla``, ``mamba``, ``linear``, ``other`` for an unknown kind, or
            None for a block without attention.
        window: most tokens that a query sees (sliding) or the length of a chunk (chunked); None without limit.
        ffn: ``dense``, ``moe``, or None for a block without an FFN.
        ffn_size: width of the dense FFN; None without one.
        rope: whether RoPE rotates queries and keys.
    """

    attention: str | None
    ffn: str | None
    window: int | None = None
    ffn_size: int | None = None
    rope: bool = True

    @property
    def words(self) -> tuple[str, ...]:
        """The block's kind in words, attention first."""
        return tuple(word for word in (self.attention, self.ffn) if word)


@dataclass(frozen=True)
class Moe:
    """The mixture of experts of a model's MoE layers.

    Attributes:
        experts: routed experts of a layer.
        top_k: experts per token.
        expert_size: width of one routed expert's FFN.
        shared_experts: experts that compute every token.
        shared_size: their total width.
        shared_gate: whether a one-column gate scales their output.
        router_bias: whether the router adds a bias to an expert's score.
        expert_bias: whether the experts' projections have biases.
        fused_activation: whether the usual engine applies the activation inside the gate_up kernel.
        routing_kernels: passes of the usual engine over the (token, expert) scores; None where unknown.
    """

    experts: int
    top_k: int
    expert_size: int
    shared_experts: int = 0
    shared_size: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    fused_activation: bool = False
    routing_kernels: int | None = None


@dataclass(frozen=True)
class Mla:
    """Ranks and head sizes of multi-head latent attention; ``q_rank`` is None where queries are not compressed."""

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int


@dataclass(frozen=True)
class Mixer:
    """A recurrent layer in place of attention: state-space (mamba) or linear attention.

    Attributes:
        kind: ``mamba``, ``mamba2`` or ``gated_delta``.
        inputs: total width of the input projections of ``hidden``.
        inner: width of the output projection's input.
        conv_channels: channels of the short convolution.
        conv_width: its taps.
        state: values of the recurrent state of one sequence.
        other_parameters: weights other than input and output projections, the convolution included.
    """

    kind: str
    inputs: int
    inner: int
    conv_channels: int
    conv_width: int
    state: int
    other_parameters: int


@dataclass(frozen=True)
class Weights:
    """Number format of the weights of each class of op."""

    attention: Format = BF16
    ffn: Format = BF16
    experts: Format = BF16
    shared: Format = BF16
    router: Format = BF16
    embedding: Format = BF16
    lm_head: Format = BF16

    @property
    def names(self) -> frozenset[str]:
        """The names of the formats in use."""
        return frozenset(entry.name for entry in vars(self).values())


@dataclass(frozen=True)
class Conventions:
    """What all models of a family have in common, unless their configs differ.

    Attributes:
        tied: whether lm_head is the embedding.
        gated: whether an FFN has a gate beside its up projection.
        qkv_bias: whether the QKV projection has a bias.
        o_bias: whether the output projection has a bias.
        mlp_bias: whether the dense FFN's projections have biases.
        sinks: whether each head has a learned attention sink.
        qk_norm: size of the norms of queries and keys: ``head``, ``all`` (over all heads), or None without weights.
        norms_after: whether a norm also follows each part of a block (Gemma).
        norm_bias: whether norms have a bias (LayerNorm).
        parallel_block: whether attention and FFN share one norm and their outputs are added.
        attention_gate: whether a projection as wide as the queries gates attention's output.
    """

    tied: bool = False
    gated: bool = True
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    sinks: bool = False
    qk_norm: str | None = None
    norms_after: bool = False
    norm_bias: bool = False
    parallel_block: bool = False
    attention_gate: bool = False


@dataclass(frozen=True, kw_only=True)
class Architecture(Conventions):
    """An LLM's architecture.

    Attributes:
        name: as the user or the table of known models calls it.
        model_type: the ``model_type`` of its config.json.
        layers: its blocks, in order.
        hidden: width of the residual stream, d.
        heads: query heads, H.
        kv_heads: key and value heads, G.
        head_dim: width of a head, h.
        vocab: rows of the embedding, V.
        rotary_dim: values of a head that RoPE rotates.
        max_positions: longest context, in tokens; None where unknown.
        moe: the mixture of experts; None without MoE layers.
        mla: multi-head latent attention; None without.
        mixer: the recurrent layers' sizes; None without such layers or where unknown.
        weights: number formats of the weights.
        activation: number format of activations.
        kv: number format of the KV cache.
        source: where the description comes from.
        notes: what was assumed, and what is not modelled.
    """

    name: str
    model_type: str
    layers: tuple[Layer, ...]
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    rotary_dim: int = 0
    max_positions: int | None = None
    moe: Moe | None = None
    mla: Mla | None = None
    mixer: Mixer | None = None
    weights: Weights = field(default_factory=Weights)
    activation: Format = BF16
    kv: Format = BF16
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def period(self) -> int:
        """Layers after which the kinds repeat from the first layer on; the layer count if they never do."""
        kinds = [(layer.words, layer.window) for layer in self.layers]
        count = len(kinds)
        return next(p for p in range(1, count + 1) if all(kinds[i] == kinds[i - p] for i in range(p, count)))

    def kind_of(self, layer: int) -> str | None:
        """Return the words that set a block apart from the others, such as ``sliding``; None if there are none."""
        return " ".join(word for word in self.layers[layer].words if word not in self._words_of_all) or None

    @cached_property
    def _words_of_all(self) -> frozenset[str]:
        return frozenset.intersection(*(frozenset(layer.words) for layer in self.layers))


def with_formats(
    architecture: Architecture, *, weights: Format | None = None, kv: Format | None = None
) -> Architecture:
    """Return the model with its matrix weights, its KV cache or both in another format.

    Embedding, lm_head and router keep theirs, as in published quantised models.
    """
    changed = architecture
    if weights:
        matrices = replace(changed.weights, attention=weights, ffn=weights, experts=weights, shared=weights)
        changed = replace(changed, weights=matrices)
    return replace(changed, kv=kv) if kv else changed
