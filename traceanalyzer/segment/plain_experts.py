"""Mixtures of experts in plain PyTorch: no kernel has a name that tells, so a sort behind a product does.

kernel  mm      topk  sort  softmax  gather  gather  bmm  silu  bmm  mul  sum       experts in one batch
kernel  mm      softmax  topk  | index  mm  silu  mm  mul  mm  index_add | index ...    expert after expert
        router
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceanalyzer.segment.tokens import EMBED, GEMM, MIXER, POSITION, IntArray, KernelVocabulary


def first_choice(products: list[int], tokens: Sequence[int], vocabulary: KernelVocabulary) -> int | None:
    """Return the first kernel that picks experts: a sort between a feed-forward's products; None where there is none.

    Args:
        products: positions of the feed-forward's matrix products.
        tokens: token of each kernel of the block.
        vocabulary: what the tokens are.
    """
    if len(products) < 3:
        return None
    for position in range(products[0] + 1, products[-2]):
        token = tokens[position]
        if vocabulary.sorts[token] or vocabulary.topk[token]:
            return position
    return None


def is_plain_mixture(block: IntArray, vocabulary: KernelVocabulary) -> bool:
    """Whether a block's feed-forward is a mixture of experts that only a sort tells."""
    classes = vocabulary.classes[block]
    mixing = np.flatnonzero(np.isin(classes, (MIXER, POSITION)))
    end = int(mixing[-1]) if len(mixing) else -1
    products: list[int] = np.flatnonzero(classes == GEMM).tolist()
    # The first product behind the mixing projects its output.
    after = [p for p in products if p > end][1 if len(mixing) else 0 :]
    return first_choice(after, block.tolist(), vocabulary) is not None


def expert_groups(products: list[int], classes: Sequence[int]) -> list[list[int]]:
    """Part the experts' products where one expert's tokens are put back and the next one's are gathered."""
    groups: list[list[int]] = []
    for number, product in enumerate(products):
        before = products[number - 1] if number else product
        if not groups or EMBED in classes[before + 1 : product]:
            groups.append([])
        groups[-1].append(product)
    return groups
