"""Roles: what each kernel does, from its name where that is specific, else from its place in the block."""

from __future__ import annotations

from dataclasses import dataclass

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
    ByteArray,
    IntArray,
    Vocabulary,
)

ROLES = (
    *(
        "norm",
        "qkv_proj",
        "rope",
        "kv_write",
        "attention",
        "o_proj",
        "router",
        "moe_routing",
        "moe_gate_up",
        "moe_down",
    ),
    *("moe_combine", "gate_up", "down", "activation", "quantize", "communication", "copy", "embedding", "lm_head"),
    *("sampler", "other"),
)
"""Every role there is."""

_CODES = {role: code for code, role in enumerate(ROLES)}


def role_codes(roles: list[str]) -> ByteArray:
    """Return positions in ROLES."""
    return np.array([_CODES[role] for role in roles], dtype=np.int8)


def block_roles(tokens: IntArray, vocabulary: Vocabulary) -> list[str]:
    """Return the role of each kernel of a block, in order of start.

    Products before the mixing of tokens project queries, keys and values, those after it up to the next norm or
    collective project its output. In the feed-forward the activation parts gate_up from down, and the expert
    kernels are the gate_up half and the down half in order; a product ahead of the routing is the router.
    """
    own = tokens.tolist()
    block = _Block(
        classes=vocabulary.classes[tokens].tolist(),
        active=vocabulary.activates[tokens].tolist(),
        roles=[vocabulary.roles[token] for token in own],
    )
    mixing = block.at(MIXER) or block.at(POSITION)
    end = mixing[-1] if mixing else -1
    products = block.at(GEMM)
    for softmax in [p for p in mixing if vocabulary.unfused[own[p]]]:
        around = [max((p for p in products if p < softmax), default=-1), *(p for p in products if p > softmax)][:2]
        for p in around:
            if p >= 0:
                block.propose(p, "attention")
                end = max(end, p)
    for p in products:
        if p < end:
            block.propose(p, "qkv_proj")
    after = [p for p in products if p > end]
    output = _output_products(block, after, end) if mixing else []
    for p in output:
        block.propose(p, "o_proj")
    _feed_forward(block, [p for p in after if p not in output])
    _experts(block)
    _fill(block, own, vocabulary)
    return [role or "other" for role in block.roles]


@dataclass(frozen=True)
class _Block:
    """A block's kernels: class, whether it activates, and role as far as it is known."""

    classes: list[int]
    active: list[bool]
    roles: list[str | None]

    def at(self, *wanted: int) -> list[int]:
        return [p for p, kind in enumerate(self.classes) if kind in wanted]

    def propose(self, position: int, role: str) -> None:
        self.roles[position] = self.roles[position] or role


def _output_products(block: _Block, after: list[int], end: int) -> list[int]:
    """The output projection: products up to the next norm, collective or routing, but for a feed-forward's."""
    parting = (NORM, COMM, ROUTE, EXPERT)
    stop = next((p for p in range(end + 1, len(block.classes)) if block.classes[p] in parting), len(block.classes))
    near = [p for p in after if p < stop] or after[:1]  # a gated norm may stand ahead of it
    active = any(block.active[end + 1 : stop])
    if len(near) > 1 and (active or (len(near) == len(after) and len(after) > 2)):
        return near[:1]
    return near


def _feed_forward(block: _Block, products: list[int]) -> None:
    products = [p for p in products if block.roles[p] is None]
    routed = block.at(ROUTE, EXPERT)
    if not routed:
        _up_and_down(block, products, "gate_up", "down")
        return
    ahead = [p for p in products if p < routed[0]]
    if ahead and not any(block.active[ahead[-1] : routed[0]]):
        router = ahead[0] if len(ahead) > 1 and not any(block.active[: ahead[-1]]) else ahead[-1]
        block.roles[router] = "router"
        products.remove(router)
    if EXPERT in block.classes:
        _up_and_down(block, products, "gate_up", "down")
    else:
        _up_and_down(block, products, "moe_gate_up", "moe_down")


def _up_and_down(block: _Block, products: list[int], up: str, down: str) -> None:
    """Products from the activation on go down, except that a separate up projection may follow the gate's."""
    if not products:
        return
    active = next((p for p in range(products[0], len(block.active)) if block.active[p]), None)
    if active is None:
        if len(products) > 1:
            for p in products[:-1]:
                block.roles[p] = up
            block.roles[products[-1]] = down
        return
    before, later = [p for p in products if p <= active], [p for p in products if p > active]
    separate = len(before) == 1 and len(later) > 1 and not any(block.active[active + 1 :])
    for p in before:
        block.roles[p] = up
    for p in later:
        block.roles[p] = up if separate else down
    if later:
        block.roles[later[-1]] = down


def _experts(block: _Block) -> None:
    experts = block.at(EXPERT)
    unnamed = [p for p in experts if block.roles[p] is None]
    named_up = next((p for p in experts if block.roles[p] == "moe_gate_up"), None)
    half = len(unnamed) - len(unnamed) // 2
    for number, p in enumerate(unnamed):
        down = number >= half if named_up is None else p > named_up
        block.roles[p] = "moe_down" if down else "moe_gate_up"


def _fill(block: _Block, tokens: list[int], vocabulary: Vocabulary) -> None:
    """Give the pieces of an unfused norm its role, and a GEMM's helper that of its GEMM."""
    for heart in [p for p, token in enumerate(tokens) if vocabulary.bare_norm[token]]:
        for step in (-1, 1):
            p = heart
            while 0 <= p < len(tokens) and block.classes[p] in (OTHER, NORM, VIEW):
                block.propose(p, "norm")
                p += step
    for p, token in enumerate(tokens[1:], start=1):
        if block.roles[p] is None and vocabulary.helpers[token]:
            block.roles[p] = block.roles[p - 1]


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
