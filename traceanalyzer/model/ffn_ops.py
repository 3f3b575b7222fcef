"""Ops of the FFN of a layer: dense, or a mixture of experts with shared ones."""

from __future__ import annotations

import math

from traceanalyzer.model.architecture import Layer, ModelError, Moe
from traceanalyzer.model.expert_routing import expected_distinct, expected_padded_rows, padded_rows
from traceanalyzer.model.formats import Format
from traceanalyzer.model.model_step import FP32_BYTES, Step
from traceanalyzer.model.op import Op


def ffn_ops(step: Step, block: Layer) -> list[Op]:
    """Return the ops between a layer's second norm and its residual add, without communication."""
    if block.ffn == "moe" and step.architecture.moe is not None:
        return _moe(step, step.architecture.moe)
    if block.ffn == "dense" and block.ffn_size is not None:
        return dense(step, block.ffn_size, step.architecture.weights.ffn, "")
    return []


def dense(step: Step, size: int, stored: Format, prefix: str) -> list[Op]:
    """Return gate_up (or up), activation and down of an FFN of this width."""
    a, t, f = step.architecture, step.tokens, step.share(size)
    parts = 2 if a.gated else 1
    return [
        *step.linear(f"{prefix}gate_up", "gate_up", stored, t, a.hidden, parts * f),
        step.elementwise(f"{prefix}activation", "activation", t * parts * f, t * f),
        *step.linear(f"{prefix}down", "down", stored, t, f, a.hidden),
    ]


def _moe(step: Step, moe: Moe) -> list[Op]:
    a = step.architecture
    tokens = step.tokens * (step.parallel.dp if step.parallel.ep > 1 else 1)
    ops = step.linear("router", "router", a.weights.router, step.tokens, a.hidden, moe.experts)
    ops.append(_routing(step, moe))
    if step.execution.moe_input_width:
        padded = step.tokens * step.execution.moe_input_width
        ops.append(step.elementwise("moe_pad", "copy", step.tokens * a.hidden, padded))
    ops += _experts(step, moe, tokens)
    if moe.shared_size:
        ops += dense(step, moe.shared_size, a.weights.shared, "shared_")
    if moe.shared_gate:
        ops += step.linear("shared_gate", "other", a.weights.router, step.tokens, a.hidden, 1)
    return ops


def _routing(step: Step, moe: Moe) -> Op:
    """Return top-k and sorting: T E scores read, T k choices written; or known passes over T E fp32 values."""
    passes, values = moe.routing_kernels, step.tokens * moe.experts
    minimal = values * step.width + step.tokens * moe.top_k * 2 * FP32_BYTES
    moved = minimal if passes is None else passes * values * 2 * FP32_BYTES
    return Op("moe_routing", "moe_routing", dtype="fp32", activation_bytes=moved, kernels=passes)


def _experts(step: Step, moe: Moe, tokens: int) -> list[Op]:
    """Return gate_up, activation and down of the routed experts on this GPU, and the sum over a token's experts."""
    a, stored = step.architecture, step.architecture.weights.experts
    whole = step.parallel.ep > 1
    local = moe.experts // step.parallel.ep
    rows = tokens * moe.top_k / step.parallel.ep
    f = moe.expert_size if whole else step.share(moe.expert_size)
    parts = 2 if a.gated else 1
    fused = moe.fused_activation if step.execution.fused_moe_activation is None else step.execution.fused_moe_activation
    distinct, notes = _distinct(step, moe, tokens)
    executed_rows = _executed_rows(step, moe, tokens)
    wide, deep = step.execution.moe_ffn_width or f, step.execution.moe_hidden_width or a.hidden
    ops: list[Op] = []

    def product(name: str, role: str, k: int, n: int, read: float, out: int, executed: float) -> Op:
        if stored.activation_bytes < step.width:
            ops.append(step.quantize(name, read, stored, notes=notes))
        return Op(
            name=name,
            role=role,
            dtype=stored.compute,
            flops=2.0 * rows * k * n,
            weight_bytes=distinct * k * n * stored.bytes,
            activation_bytes=read * min(stored.activation_bytes, step.width) + rows * out * step.width,
            m=round(rows),
            n=n,
            k=k,
            executed_flops=None if executed_rows is None else 2.0 * executed_rows * executed,
            notes=notes,
            experts=local,
            top_k=moe.top_k,
            distinct_experts=distinct,
        )

    gathered = min(tokens, rows) * a.hidden
    out = f if fused else parts * f
    gate_up = product("moe_gate_up", "moe_gate_up", a.hidden, parts * f, gathered, out, deep * parts * wide)
    ops.append(gate_up)
    if not fused:
        ops.append(step.elementwise("moe_activation", "activation", rows * parts * f, rows * f))
    ops.append(product("moe_down", "moe_down", f, a.hidden, rows * f, a.hidden, wide * deep))
    ops.append(step.elementwise("moe_combine", "moe_combine", rows * a.hidden, min(tokens, rows) * a.hidden))
    return ops


def _distinct(step: Step, moe: Moe, tokens: int) -> tuple[float, tuple[str, ...]]:
    """Return how many of this GPU's experts get a token, and where that is from."""
    routing, ep = step.routing, step.parallel.ep
    if routing.counts is not None:
        if len(routing.counts) != moe.experts:
            raise ModelError(f"{len(routing.counts)} expert counts given for {moe.experts} experts")
        hit = sum(1 for rows in routing.counts if rows)
        return hit / ep, (f"{hit} of {moe.experts} experts hit, as observed",)
    if routing.distinct is not None:
        hit_given = min(routing.distinct, moe.experts)
        return hit_given / ep, (f"{hit_given:g} of {moe.experts} experts hit, as given",)
    hit_expected = expected_distinct(moe.experts, moe.top_k, tokens, routing.skew)
    how = (
        "uniform routing (real routing hits fewer)"
        if routing.skew == 0
        else f"Zipf routing of exponent {routing.skew:g}"
    )
    balance = "" if ep == 1 else ", spread evenly over the ranks"
    return hit_expected / ep, (f"{hit_expected:.1f} of {moe.experts} experts hit, expected for {how}{balance}",)


def _executed_rows(step: Step, moe: Moe, tokens: int) -> float | None:
    block, routing = step.execution.moe_block_m, step.routing
    if block is None:
        return None
    if routing.counts is not None:
        return padded_rows(routing.counts, block) / step.parallel.ep
    if routing.distinct is not None:
        # Rows spread evenly over the experts that are hit.
        hit = min(routing.distinct, moe.experts)
        return hit * math.ceil(tokens * moe.top_k / hit / block) * block / step.parallel.ep
    return expected_padded_rows(moe.experts, moe.top_k, tokens, block, routing.skew) / step.parallel.ep
