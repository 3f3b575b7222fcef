"""Ops of the attention part of a layer: grouped-query, latent (MLA) and recurrent."""

from __future__ import annotations

from collections.abc import Iterable

from traceanalyzer.model.architecture import RECURRENT, Layer, Mixer, Mla
from traceanalyzer.model.model_step import Step
from traceanalyzer.model.op import Op
from traceanalyzer.model.workload import Attended, Group

UNKNOWN_CONTEXT = "context length unknown: pass it to model attention"
EQUAL_LENGTHS = "assumes sequences of equal length: with a window, an upper bound"


def attention_ops(step: Step, block: Layer) -> list[Op]:
    """Return the ops between a layer's input norm and its residual add, without communication."""
    if block.attention is None:
        return []
    if block.attention == "other":
        why = "unknown kind of attention"
        return [Op("attention", "attention", flops=None, kv_bytes=None, kernels=None, notes=(why,))]
    if block.attention in RECURRENT:
        return _recurrent(step, step.architecture.mixer)
    if block.attention == "mla" and step.architecture.mla is not None:
        return _latent(step, step.architecture.mla, block)
    return _grouped(step, block)


def _grouped(step: Step, block: Layer) -> list[Op]:
    a, t, h = step.architecture, step.tokens, step.architecture.head_dim
    queries, keys = step.heads * h, step.kv_heads * h
    width = queries * (2 if a.attention_gate else 1) + 2 * keys
    ops = step.linear("qkv_proj", "qkv_proj", a.weights.attention, t, a.hidden, width)
    if a.qk_norm:
        ops.append(step.elementwise("qk_norm", "norm", t * (queries + keys), t * (queries + keys), kernels=None))
    if block.rope:
        rotated = t * (step.heads + step.kv_heads) * a.rotary_dim
        ops.append(step.elementwise("rope", "rope", rotated, rotated))
    ops.append(_kv_write(step, t * 2 * keys))
    ops.append(_softmax_attention(step, block))
    if a.attention_gate:
        ops.append(step.elementwise("attention_gate", "activation", 2 * t * queries, t * queries))
    return ops + step.linear("o_proj", "o_proj", a.weights.attention, t, queries, a.hidden)


def _kv_write(step: Step, values: float) -> Op:
    """Return the write of new keys and values to the cache: values (b_a + b_kv) bytes."""
    kv_bytes = values * step.architecture.kv.bytes
    return Op("kv_write", "kv_write", activation_bytes=values * step.width, kv_bytes=kv_bytes)


def attended(groups: Iterable[Group], layer: Layer) -> Attended:
    """Return what a layer's attention touches in these groups; None where a context is unknown."""
    attended = [_attended(group, layer) for group in groups]
    pairs = [one.pairs for one in attended if one.pairs is not None]
    read = [one.kv_tokens for one in attended if one.kv_tokens is not None]
    known = len(pairs) == len(read) == len(attended)
    return Attended(sum(pairs) if known else None, sum(read) if known else None, all(one.exact for one in attended))


def _attended(group: Group, layer: Layer) -> Attended:
    if layer.window is None:
        return group.full()
    return group.chunked(layer.window) if layer.attention == "chunked" else group.sliding(layer.window)


def _softmax_attention(step: Step, block: Layer) -> Op:
    """4 H h FLOP per pair; 2 G h cached values per visible token; queries read and outputs written."""
    a = step.architecture
    seen, queries = attended(step.workload.groups, block), step.heads * a.head_dim
    return _attention(step, seen, 4 * queries, 2 * step.tokens * queries, 2 * step.kv_heads * a.head_dim * a.kv.bytes)


def _attention(step: Step, seen: Attended, flops: int, activations: int, kv_bytes: float, *notes: str) -> Op:
    """Return attention with this many FLOP per pair, activation values, and bytes read per visible token."""
    about = (UNKNOWN_CONTEXT,) if seen.pairs is None else () if seen.exact else (EQUAL_LENGTHS,)
    return Op(
        name="attention",
        role="attention",
        dtype=step.architecture.activation.compute,
        flops=None if seen.pairs is None else float(flops) * seen.pairs,
        activation_bytes=activations * step.width,
        kv_bytes=None if seen.kv_tokens is None else seen.kv_tokens * kv_bytes,
        kernels=None,
        notes=(*about, *notes),
    )


def _latent(step: Step, mla: Mla, block: Layer) -> list[Op]:
    """MLA: decode computes on the latents (absorbed), a prompt on keys and values expanded from them."""
    a, t = step.architecture, step.tokens
    stored = a.weights.attention
    queries = step.heads * (mla.nope + mla.rope)
    latent = mla.kv_rank + mla.rope
    ops: list[Op] = []
    if mla.q_rank:
        # The two down-projections share their input and are one GEMM in the engines.
        ops += step.linear("qkv_a_proj", "qkv_proj", stored, t, a.hidden, mla.q_rank + latent)
        normed = t * (mla.q_rank + mla.kv_rank)
        ops.append(step.elementwise("qkv_a_norm", "norm", normed, normed, kernels=None))
        ops += step.linear("q_b_proj", "qkv_proj", stored, t, mla.q_rank, queries)
    else:
        ops += step.linear("q_proj", "qkv_proj", stored, t, a.hidden, queries)
        ops += step.linear("kv_a_proj", "qkv_proj", stored, t, a.hidden, latent)
        ops.append(step.elementwise("kv_a_norm", "norm", t * mla.kv_rank, t * mla.kv_rank))
    rotated = t * (step.heads + 1) * mla.rope
    ops.append(step.elementwise("rope", "rope", rotated, rotated))
    ops.append(_kv_write(step, t * latent))
    decode = [group for group in step.workload.groups if group.decode]
    context = [group for group in step.workload.groups if not group.decode]
    if context:
        ops += _latent_context(step, mla, block, context)
    if decode:
        ops += _latent_decode(step, mla, block, decode)
    return ops + step.linear("o_proj", "o_proj", stored, t, step.heads * mla.v, a.hidden)


def _latent_decode(step: Step, mla: Mla, block: Layer, groups: list[Group]) -> list[Op]:
    """2 H (2 kv_lora + rope) FLOP per pair, one latent read for all heads; W_UK and W_UV applied to each token."""
    a, seen = step.architecture, attended(groups, block)
    t, latent = sum(group.tokens for group in groups), mla.kv_rank + mla.rope
    absorbed = step.heads * mla.kv_rank * (mla.nope + mla.v)
    values = step.heads * (latent + mla.kv_rank)
    how = "absorbed: attention over the latents"
    attention = _attention(step, seen, 2 * values, t * values, latent * a.kv.bytes, how)
    around = Op(
        name="absorb",
        role="attention",
        dtype=a.activation.compute,
        flops=2.0 * t * absorbed,
        # Engines keep W_UK and W_UV unquantised for the batched GEMMs.
        weight_bytes=absorbed * step.width,
        activation_bytes=t * step.heads * (mla.nope + 2 * mla.kv_rank + mla.v) * step.width,
        kernels=2,
        notes=("W_UK on queries and W_UV on outputs, as batched GEMMs in the activations' format",),
    )
    return [attention, around]


def _latent_context(step: Step, mla: Mla, block: Layer, groups: list[Group]) -> list[Op]:
    """Keys and values of the whole context are expanded, then 2 H (nope + rope + v) FLOP per pair."""
    a, seen = step.architecture, attended(groups, block)
    t, head = sum(group.tokens for group in groups), mla.nope + mla.rope
    expanded = step.heads * (mla.nope + mla.v)
    m = int(seen.kv_tokens) if seen.kv_tokens is not None else t
    ops = step.linear("kv_b_proj", "qkv_proj", a.weights.attention, m, mla.kv_rank, expanded)
    values, how = step.heads * (head + mla.v), "keys and values expanded from the latents"
    return [*ops, _attention(step, seen, 2 * values, t * values, values * step.width, how)]


def _recurrent(step: Step, mixer: Mixer | None) -> list[Op]:
    """Projections, short convolution and state update; None FLOP where the sizes are unknown."""
    a, t = step.architecture, step.tokens
    if mixer is None:
        why = "recurrent layer of unknown size"
        return [Op("recurrent", "other", flops=None, kv_bytes=None, kernels=None, notes=(why,))]
    inputs, inner, channels = step.share(mixer.inputs), step.share(mixer.inner), step.share(mixer.conv_channels)
    state, b = step.share(mixer.state), step.workload.sequences
    ops = step.linear("mixer_in_proj", "qkv_proj", a.weights.attention, t, a.hidden, inputs)
    taps = b * channels * (mixer.conv_width - 1) * step.width
    ops.append(
        Op(
            name="short_conv",
            role="other",
            dtype=a.activation.compute,
            flops=2.0 * t * channels * mixer.conv_width,
            activation_bytes=2 * t * channels * step.width,
            kv_bytes=2 * taps,
        )
    )
    ops.append(
        Op(
            name="state_update",
            role="other",
            dtype=a.activation.compute,
            # Decay, outer product and read-out: about 6 FLOP per value of the state and token.
            flops=6.0 * t * state,
            activation_bytes=t * (channels + inner) * step.width,
            kv_bytes=2 * b * state * 4.0,
            kernels=None,
            notes=("recurrent state in fp32, read and written once per step; a chunked scan computes more",),
        )
    )
    return ops + step.linear("mixer_out_proj", "o_proj", a.weights.attention, t, inner, a.hidden)
