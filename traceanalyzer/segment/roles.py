"""Roles: what each kernel does, from its name where that is specific, else from its place in the block."""

from __future__ import annotations

import numpy as np

from traceanalyzer.segment.vocabulary import (
    COMM,
    EMBED,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    OTHER,
    POSITION,
    ROUTE,
    VIEW,
    BoolArray,
    ByteArray,
    IntArray,
    Vocabulary,
)


def block_roles(tokens: IntArray, vocabulary: Vocabulary) -> list[str]:
    """Return the role of each kernel of a block, in order of start.

    Products before the mixing of tokens project queries, keys and values, those after it up to the next norm or
    collective project its output. In the feed-forward the activation parts gate_up from down, and the expert
    kernels are the gate_up half and the down half in order; a product ahead of the routing is the router.
    """
    classes = vocabulary.classes[tokens]
    roles: list[str | None] = [vocabulary.roles[token] for token in tokens.tolist()]
    mixing = np.flatnonzero(np.isin(classes, (MIXER, POSITION)))
    start, end = (int(mixing[0]), int(mixing[-1])) if len(mixing) else (0, -1)
    mixers = np.flatnonzero(classes == MIXER)
    end = int(mixers[-1]) if len(mixers) else end
    products = [int(p) for p in np.flatnonzero(classes == GEMM)]
    for p in products:
        if p < start or p < end:
            roles[p] = roles[p] or "qkv_proj"
    after = [p for p in products if p > end]
    output = _output_products(after, end, classes, vocabulary.activates[tokens]) if len(mixing) else []
    for p in output:
        roles[p] = roles[p] or "o_proj"
    _feed_forward(roles, [p for p in after if p not in output], classes, vocabulary.activates[tokens])
    _experts(roles, [int(p) for p in np.flatnonzero(classes == EXPERT)], vocabulary.activates[tokens])
    _fill(roles, tokens, classes, vocabulary)
    return [role or "other" for role in roles]


def _output_products(after: list[int], end: int, classes: ByteArray, activates: BoolArray) -> list[int]:
    """The output projection: products up to the next norm, collective or routing, but for a feed-forward's."""
    stop = next((p for p in range(end + 1, len(classes)) if classes[p] in (NORM, COMM, ROUTE, EXPERT)), len(classes))
    near = [p for p in after if p < stop]
    active = next((p for p in range(end + 1, stop) if activates[p]), None)
    if active is None or len(near) < 2:
        if len(after) >= 3 and len(near) == len(after):
            return near[:1]
        return near
    return near[:1]


def _feed_forward(roles: list[str | None], products: list[int], classes: ByteArray, activates: BoolArray) -> None:
    routed = np.flatnonzero(np.isin(classes, (ROUTE, EXPERT)))
    open_products = [p for p in products if roles[p] is None]
    if len(routed):
        ahead = [p for p in open_products if p < routed[0]]
        if ahead and not any(activates[p] for p in range(ahead[-1], int(routed[0]))):
            router = ahead[0] if len(ahead) > 1 and not any(activates[: ahead[-1]]) else ahead[-1]
            roles[router] = "router"
            open_products.remove(router)
        has_experts = bool((classes == EXPERT).any())
        up, down = ("gate_up", "down") if has_experts else ("moe_gate_up", "moe_down")
        _up_and_down(roles, open_products, activates, up, down)
        return
    _up_and_down(roles, open_products, activates, "gate_up", "down")


def _up_and_down(roles: list[str | None], products: list[int], activates: BoolArray, up: str, down: str) -> None:
    """Products from the activation on go down, except that a separate up projection may follow the gate's."""
    if not products:
        return
    active = [p for p in np.flatnonzero(activates).tolist() if products[0] <= p]
    if not active:
        if len(products) > 1:
            for p in products:
                roles[p] = up
            roles[products[-1]] = down
        return
    before = [p for p in products if p <= active[0]]
    later = [p for p in products if p > active[0]]
    for p in before:
        roles[p] = up
    for p in later:
        roles[p] = up if len(later) > 1 and len(before) == 1 and len(active) == 1 else down
    if later:
        roles[later[-1]] = down


def _experts(roles: list[str | None], experts: list[int], activates: BoolArray) -> None:
    unnamed = [p for p in experts if roles[p] is None]
    named_up = [p for p in experts if roles[p] == "moe_gate_up"]
    if not unnamed:
        return
    if named_up:
        for p in unnamed:
            roles[p] = "moe_down" if p > named_up[0] else "moe_gate_up"
        return
    split = max(len(unnamed) - len(unnamed) // 2, 1)
    for number, p in enumerate(unnamed):
        roles[p] = "moe_gate_up" if number < split else "moe_down"


def _fill(roles: list[str | None], tokens: IntArray, classes: ByteArray, vocabulary: Vocabulary) -> None:
    """Give the pieces of an unfused norm its role, and a GEMM's helper that of its GEMM."""
    bare = np.flatnonzero(vocabulary.bare_norm[tokens])
    for heart in bare.tolist():
        for step in (-1, 1):
            position = heart
            while 0 <= position < len(tokens) and classes[position] in (OTHER, NORM, VIEW):
                if roles[position] is None or position == heart:
                    roles[position] = "norm"
                position += step
    for position in range(1, len(tokens)):
        if roles[position] is None and vocabulary.names[tokens[position]].lower().find("splitk") >= 0:
            roles[position] = roles[position - 1]


def outer_roles(tokens: IntArray, durations: IntArray, vocabulary: Vocabulary, *, epilogue: bool) -> list[str]:
    """Return the roles of the kernels before the first block or after the last one.

    The longest matrix product of the epilogue is lm_head, and what computes behind it is the sampler; a gather
    in the prologue is the embedding.
    """
    classes = vocabulary.classes[tokens]
    roles: list[str | None] = [vocabulary.roles[token] for token in tokens.tolist()]
    gathers = np.flatnonzero(classes == EMBED)
    if not epilogue:
        if len(gathers) and "embedding" not in roles:
            roles[int(gathers[-1])] = "embedding"
        return [role or "other" for role in roles]
    products = np.flatnonzero(classes == GEMM)
    head = int(products[durations[products].argmax()]) if len(products) else -1
    for position, token in enumerate(tokens.tolist()):
        if position == head:
            roles[position] = "lm_head"
        elif classes[position] == EMBED:
            roles[position] = "copy"
        elif roles[position] is None:
            bare = vocabulary.bare_norm[token] or position < head
            roles[position] = "norm" if bare and _near_norm(position, tokens, vocabulary) else None
            if roles[position] is None and position > head >= 0:
                roles[position] = "sampler"
    return [role or "other" for role in roles]


def _near_norm(position: int, tokens: IntArray, vocabulary: Vocabulary) -> bool:
    near = tokens[max(position - 16, 0) : position + 17]
    return bool(vocabulary.bare_norm[near].any())
