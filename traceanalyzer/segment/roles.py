"""Roles: what each kernel does, from its name where that is specific, else from its place in the block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceanalyzer.segment.plain_experts import expert_groups, first_choice
from traceanalyzer.segment.tokens import (
    COMM,
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
    KernelVocabulary,
)
from traceanalyzer.words import ROLES

_GATES = re.compile(r"(?i)^(?!.*(silu|swish|gelu|top_?k|rout|expert|moe)).*sigmoid")
"""Elementwise kernels that squash what gates a tensor, and are not the activation of a feed-forward."""

_CODES: dict[str, int] = {role: code for code, role in enumerate(ROLES)}


def role_codes(roles: list[str]) -> ByteArray:
    """Return positions in ROLES."""
    return np.array([_CODES[role] for role in roles], dtype=np.int8)


def block_roles(tokens: IntArray, vocabulary: KernelVocabulary) -> list[str]:
    """Return the role of each kernel of a block, in order of start.

    Products before the mixing of tokens project queries, keys and values, those after it up to the next norm or
    collective project its output. In the feed-forward the activation parts gate_up from down, and the expert
    kernels are the gate_up half and the down half in order; a product before the routing is the router:

        kernel  norm  gemm      rope  attn       gemm    norm  gemm     silu        gemm
        role    norm  qkv_proj  rope  attention  o_proj  norm  gate_up  activation  down
    """
    own = tokens.tolist()
    block = _Block(
        tokens=own,
        classes=vocabulary.classes[tokens].tolist(),
        active=vocabulary.activates[tokens].tolist(),
        roles=[vocabulary.roles[token] for token in own],
    )
    mixing = block.at(MIXER) or block.at(POSITION)
    products = block.at(GEMM)
    end = _around_unfused(block, mixing, products, vocabulary)
    # Up to the end of the mixing: projections to it, and in a decoder with two attentions the output of the first.
    for p in products:
        if p < end:
            block.propose(p, "o_proj" if _ends_attention(block, own, p, vocabulary) else "qkv_proj")
    after = [p for p in products if p > end]
    output = _output_products(block, after, end) if mixing else []
    for p in output:
        block.propose(p, "o_proj")
    # The rest of the products belong to the feed-forward. What is not a product comes last, by those around it.
    _feed_forward(block, [p for p in after if p not in output], vocabulary)
    _experts(block)
    _fill(block, own, vocabulary)
    _between_products(block, vocabulary)
    return [role or "other" for role in block.roles]


def _around_unfused(block: _Block, mixing: list[int], products: list[int], vocabulary: KernelVocabulary) -> int:
    """Give the two products around an unfused softmax to attention; return where the mixing of tokens ends."""
    end = mixing[-1] if mixing else -1
    for softmax in mixing:
        if vocabulary.unfused[block.tokens[softmax]]:
            before = [p for p in products if p < softmax][-1:]
            behind = [p for p in products if p > softmax][:1]
            for p in before + behind:
                block.propose(p, "attention")
                end = max(end, p)
    return end


@dataclass(frozen=True)
class _Block:
    """A block's kernels: token, class, whether it activates, and role as far as it is known."""

    tokens: list[int]
    classes: list[int]
    active: list[bool]
    roles: list[str | None]

    def at(self, *wanted: int) -> list[int]:
        return [p for p, kind in enumerate(self.classes) if kind in wanted]

    def first_active(self, start: int) -> int | None:
        return next((p for p in range(start, len(self.active)) if self.active[p]), None)

    def assign(self, positions: list[int], role: str) -> None:
        for position in positions:
            self.roles[position] = role

    def propose(self, position: int, role: str) -> None:
        self.roles[position] = self.roles[position] or role


def _output_products(block: _Block, after: list[int], end: int) -> list[int]:
    """Return the output projection: products up to the next norm, collective or routing, but for a feed-forward's."""
    parting = (NORM, COMM, ROUTE, EXPERT)
    stop = next((p for p in range(end + 1, len(block.classes)) if block.classes[p] in parting), len(block.classes))
    near = [p for p in after if p < stop] or after[:1]  # a gated norm may stand before it
    active = any(block.active[end + 1 : stop])
    if len(near) > 1 and (active or (len(near) == len(after) and len(after) > 2)):
        return near[:1]
    return near


def _ends_attention(block: _Block, tokens: list[int], product: int, vocabulary: KernelVocabulary) -> bool:
    """Whether a product follows an attention and has a norm after it: self attention before cross attention."""
    near = (p for p in range(product - 1, -1, -1) if block.classes[p] in (NORM, MIXER))
    before = next(near, None)
    after = next((p for p in range(product + 1, len(tokens)) if block.classes[p] in (NORM, MIXER, GEMM)), None)
    if before is None or after is None or block.classes[after] != NORM:
        return False
    return vocabulary.mixers[tokens[before]] == "attention"


def _feed_forward(block: _Block, products: list[int], vocabulary: KernelVocabulary) -> None:
    products = [p for p in products if block.roles[p] is None]
    routed = block.at(ROUTE, EXPERT)
    if not routed:
        _plain_feed_forward(block, products, vocabulary)
        return
    router = _router(block, [p for p in products if p < routed[0]], routed[0])
    if router is not None:
        block.roles[router] = "router"
        products.remove(router)
    if EXPERT in block.classes:
        gate = _shared_gate(block, products, vocabulary)
        if gate is not None:
            block.roles[gate] = "other"
            products.remove(gate)
        _up_and_down(block, products, "gate_up", "down")
    else:
        _up_and_down(block, products, "moe_gate_up", "moe_down")


def _plain_feed_forward(block: _Block, products: list[int], vocabulary: KernelVocabulary) -> None:
    """A feed-forward without kernels made for experts: dense, or experts picked by a sort and multiplied one by one.

    kernel  mm      softmax      topk         index  mm           silu        mm        index_add
    role    router  moe_routing  moe_routing  other  moe_gate_up  activation  moe_down  other
    """
    choice = first_choice(products, block.tokens, vocabulary)
    if choice is None:
        _up_and_down(block, products, "gate_up", "down")
        return
    ahead = [p for p in products if p < choice]
    _up_and_down(block, ahead[:-1], "gate_up", "down")
    block.roles[ahead[-1]] = "router"
    for group in expert_groups([p for p in products if p > choice], block.classes):
        _up_and_down(block, group, "moe_gate_up", "moe_down")


def _shared_gate(block: _Block, products: list[int], vocabulary: KernelVocabulary) -> int | None:
    """The product to a single column that weighs the shared experts' output, before them or after.

    A sigmoid follows it at once; where that is fused into something later, it is a product after their down
    projection. A projection of their own with an activation that is called a sigmoid stands between others.
    """
    for gate in (products[-1:], products[:1]):
        rest = [p for p in products if p not in gate]
        shared = len(rest) > 1 and any(block.active[rest[0] : rest[-1]])
        if shared and _GATES.search(vocabulary.names[block.tokens[_next(block, gate[0], vocabulary)]]):
            return gate[0]
    return _gate_after_down(block, products)


def _gate_after_down(block: _Block, products: list[int]) -> int | None:
    """The shared experts' gate where its sigmoid is fused away: the second of two products after the activation."""
    active = block.first_active(products[0]) if products else None
    if active is None:
        return None
    later = [p for p in products if p > active]
    before = products[: len(products) - len(later)]
    if len(later) != 2 or not before or any(block.active[later[0] : later[1]]):
        return None
    # Gate and up as two runs of one kernel: the second is the up projection, not the down projection.
    separate = len(before) == 1 and block.tokens[before[0]] == block.tokens[later[0]]
    return None if separate or EXPERT in block.classes[before[0] : later[1]] else later[1]


def _next(block: _Block, product: int, vocabulary: KernelVocabulary) -> int:
    """The first kernel after a product that does work of its own; the product where there is none."""
    behind = range(product + 1, len(block.tokens))
    return next((p for p in behind if block.classes[p] != VIEW and not vocabulary.helpers[block.tokens[p]]), product)


def _router(block: _Block, ahead: list[int], routed: int) -> int | None:
    """The router among the products before the routing, some of which may be those of shared experts.

    Shared experts have one product, or two of one kernel (gate and up), before their activation, and one after
    it. A further product before them is the router; otherwise it is the last one.
    """
    if not ahead or any(block.active[ahead[-1] : routed]) or "router" in block.roles:
        return None
    active = next((p for p in range(ahead[0], routed) if block.active[p]), None)
    before = [p for p in ahead if active is not None and p <= active]
    behind = len(ahead) - len(before)
    if not before:
        return ahead[0]
    if len(before) == 1:
        return ahead[-1] if behind > 1 else None
    pair = len(before) == 2 and block.tokens[before[0]] == block.tokens[before[1]]
    return ahead[-1] if pair and behind > 1 else before[0]


def _up_and_down(block: _Block, products: list[int], up: str, down: str) -> None:
    """Products from the activation on go down, except that a separate up projection may follow the gate's."""
    if not products:
        return
    active = block.first_active(products[0])
    if active is None:
        # Nothing parts them: the last one of several goes down.
        if len(products) > 1:
            block.assign(products[:-1], up)
            block.assign(products[-1:], down)
        return
    before, later = [p for p in products if p <= active], [p for p in products if p > active]
    separate = len(before) == 1 and len(later) > 1 and not any(block.active[active + 1 : later[-1]])
    block.assign(before, up)
    block.assign(later[:-1], up if separate else down)
    block.assign(later[-1:], down)


def _experts(block: _Block) -> None:
    # In order, half of the expert products go up and half down, the odd one up; a name that tells settles it.
    experts = block.at(EXPERT)
    unnamed = [p for p in experts if block.roles[p] is None]
    named_up = next((p for p in experts if block.roles[p] == "moe_gate_up"), None)
    half = len(unnamed) - len(unnamed) // 2
    for number, p in enumerate(unnamed):
        down = number >= half if named_up is None else p > named_up
        block.roles[p] = "moe_down" if down else "moe_gate_up"


def _fill(block: _Block, tokens: list[int], vocabulary: KernelVocabulary) -> None:
    """Give the pieces of an unfused norm its role, and a GEMM's helper that of its GEMM."""
    # A norm that is not fused is a run of small kernels around the one that takes the root.
    for heart in [p for p, token in enumerate(tokens) if vocabulary.bare_norm[token]]:
        start = end = heart
        while start > 0 and block.classes[start - 1] in (OTHER, NORM, VIEW):
            start -= 1
        while end + 1 < len(tokens) and block.classes[end + 1] in (OTHER, NORM, VIEW):
            end += 1
        if start and start < heart and vocabulary.adds[tokens[start]]:
            start += 1  # the residual addition after a product
        for p in range(start, end + 1):
            block.propose(p, "norm")
    for p, token in enumerate(tokens[1:], start=1):
        if block.roles[p] is None and vocabulary.helpers[token]:
            block.roles[p] = block.roles[p - 1]


def _between_products(block: _Block, vocabulary: KernelVocabulary) -> None:
    """What computes between gate_up and down is the activation, what sorts between router and experts routes."""
    for start, end, role in _stretches(block.roles):
        for p in range(start + 1, end):
            token = block.tokens[p]
            sorting = role == "activation" or vocabulary.sorts[token] or vocabulary.softmax[token]
            if block.classes[p] == OTHER and sorting:
                block.propose(p, role)


def _stretches(roles: list[str | None]) -> list[tuple[int, int, str]]:
    """The stretches from each gate_up to a down right after it, and from the router to the first expert."""
    products = [(p, role) for p, role in enumerate(roles) if role in ("gate_up", "down")]
    stretches = [(a, b, "activation") for (a, one), (b, two) in pairwise(products) if (one, two) == ("gate_up", "down")]
    router = next((p for p, role in enumerate(roles) if role == "router"), None)
    if router is not None:
        expert = next((p for p, role in enumerate(roles) if role == "moe_gate_up" and p > router), router)
        stretches.append((router, expert, "moe_routing"))
    return stretches
