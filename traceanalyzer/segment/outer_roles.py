"""Roles of the kernels outside of blocks: embedding, the model's head, the sampler; each needs evidence of its own.

... blocks | norm  gather  product  argmax        a language model: head and sampler
... blocks | norm  product  copy                  a classifier, as narrow as the model: other
... blocks | conv  upsample  conv ...             a decoder of images: other
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traceanalyzer.segment.post_norm import has_pooler
from traceanalyzer.segment.tokens import (
    COMM,
    CONV,
    EMBED,
    GEMM,
    POSITION,
    SAMPLE,
    BoolArray,
    IntArray,
    KernelVocabulary,
)

_WRITES = re.compile(r"scatter|index_put|index_copy|index_fill", re.IGNORECASE)
"""Index kernels that write somewhere instead of reading."""

_LIKE_THE_LONGEST = 0.7
"""Share of the longest product's time from which one may be lm_head: draft heads after it are of about its size.
Chosen, not fitted."""

_WIDE = 2.0
"""Times as long as a block's output projection from which a product counts as much wider than the model. The narrowest
vocabulary of common models is 3.9 times as wide as the model (Llama 2 70B), a classifier of 1,000 classes 1.3 times.
Chosen, not fitted."""

_NORM_REACH = 16
"""Kernels to either side of a norm's heart that may be pieces of it. Chosen, not fitted."""


@dataclass(frozen=True)
class StepEvidence:
    """What a step's blocks and marker say about what may follow the blocks.

    Attributes:
        serves: a language model: its blocks write keys or rotate by position, or an engine's marker stands over it.
        trains: the step computes gradients: nothing is sampled.
        typical_ns: usual time of a product as wide as the model; 0 where no block has one.
    """

    serves: bool
    trains: bool
    typical_ns: float


def step_evidence(
    tokens: IntArray, durations: IntArray, output: BoolArray, vocabulary: KernelVocabulary, *, marked: bool
) -> StepEvidence:
    """Gather it.

    Args:
        tokens, durations: token and ns of each kernel of the step, [kernels].
        output: whether each is an output projection, [kernels].
        vocabulary: what the tokens are.
        marked: whether a serving engine's marker stands over the step.
    """
    return StepEvidence(
        serves=marked or bool((vocabulary.classes[tokens] == POSITION).any()),
        trains=bool(vocabulary.backward[tokens].any()),
        typical_ns=float(np.median(durations[output])) if output.any() else 0.0,
    )


def outer_roles(
    tokens: IntArray, durations: IntArray, block_of: IntArray, vocabulary: KernelVocabulary, evidence: StepEvidence
) -> dict[int, str]:
    """Return the role of each kernel of a step that is in no block, by its position.

    A gather before a pass through the model is the embedding. After one, a product much wider than the model is lm_head
    and what computes after that and samples the sampler. Between two passes (verification and drafts) one ends and the
    next begins; without sampling in between, the first was not a pass of its own (a vision tower). In a step without
    blocks only names tell, and a name does not tell that a random number or a largest value samples a token.
    """
    if block_of.max(initial=-1) < 0:
        return dict(enumerate(_by_name(tokens, vocabulary, evidence)))
    roles: dict[int, str] = {}
    runs = _outside(block_of)
    # Each run [kernels] lies between two blocks or at an end of the step; sampling parts what follows one pass from
    # what precedes the next.
    for number, part in enumerate(runs):
        sampling = np.flatnonzero(vocabulary.classes[tokens[part]] == SAMPLE)
        last = int(sampling[-1]) + 1 if len(sampling) else 0
        turn = 0 if number == 0 else len(part) if number == len(runs) - 1 else last
        behind, ahead = part[:turn], part[turn:]
        told = _behind(tokens[behind], durations[behind], vocabulary, evidence)
        roles.update(zip(behind.tolist(), told, strict=True))
        roles.update(zip(ahead.tolist(), _ahead(tokens[ahead], vocabulary), strict=True))
    if "lm_head" not in roles.values() and not evidence.serves:
        return {position: "other" if role == "sampler" else role for position, role in roles.items()}
    return roles


def _by_name(tokens: IntArray, vocabulary: KernelVocabulary, evidence: StepEvidence) -> list[str]:
    """Roles in a step without blocks. A softmax between its products is any softmax: a benchmark's, a loss's."""
    doubtful = vocabulary.unfused[tokens]
    if not evidence.serves:
        doubtful = doubtful | np.array(
            [vocabulary.roles[token] == "sampler" for token in tokens.tolist()], dtype=np.bool_
        )
    named = [vocabulary.roles[token] or "other" for token in tokens.tolist()]
    return ["other" if doubt else role for role, doubt in zip(named, doubtful.tolist(), strict=True)]


def _outside(block_of: IntArray) -> list[IntArray]:
    """Positions before the first block, between each two, and after the last one; those inside of one come last."""
    outside = np.flatnonzero(block_of < 0)
    count = int(block_of.max()) + 1
    placed = np.flatnonzero(block_of >= 0)
    first, last = np.full(count, len(block_of)), np.zeros(count, dtype=np.int64)
    np.minimum.at(first, block_of[placed], placed)
    np.maximum.at(last, block_of[placed], placed)
    begun, ended = (np.searchsorted(np.sort(edge), outside) for edge in (first, last))
    run = np.where(begun == ended, ended, count)
    return [outside[run == number] for number in range(count + 1) if number in (0, count) or (run == number).any()]


def _ahead(tokens: IntArray, vocabulary: KernelVocabulary) -> list[str]:
    """Roles before a pass: its last gather is the embedding, and so are others by the same kernel."""
    roles = [vocabulary.roles[token] for token in tokens.tolist()]
    gathers = np.flatnonzero(vocabulary.classes[tokens] == EMBED)
    reads = [not _WRITES.search(vocabulary.names[token]) for token in tokens[gathers].tolist()]
    gathers = gathers[np.array(reads, dtype=np.bool_)]
    if len(gathers) and "embedding" not in roles:
        for position in gathers[tokens[gathers] == tokens[gathers[-1]]].tolist():
            roles[position] = "embedding"
    return [role or "other" for role in roles]


def _behind(tokens: IntArray, durations: IntArray, vocabulary: KernelVocabulary, evidence: StepEvidence) -> list[str]:
    """Roles after a pass: its head if it has one, and what computes and samples after that.

    Args:
        tokens, durations: token and ns of each kernel, [kernels].
        vocabulary: what the tokens are.
        evidence: what the rest of the step says.
    """
    classes = vocabulary.classes[tokens]
    # Once gradients are computed, nothing is a pass's end any more.
    gradients = np.flatnonzero(vocabulary.backward[tokens])
    forward = int(gradients[0]) if len(gradients) else len(tokens)
    head = _lm_head(tokens[:forward], durations[:forward], vocabulary, evidence)
    samples = not evidence.trains and _samples(tokens[max(head, 0) :], vocabulary)
    roles: list[str] = []
    for position, token in enumerate(tokens.tolist()):
        if position == head:
            role = "lm_head"
        elif classes[position] == EMBED:
            role = "copy"
        else:
            role = vocabulary.roles[token] or _unnamed_after(position, head, tokens, vocabulary)
            role = "other" if role == "sampler" and not (samples and (head >= 0 or evidence.serves)) else role
        roles.append(role)
    return roles


def _samples(tokens: IntArray, vocabulary: KernelVocabulary) -> bool:
    """Whether anything picks a token: argmax, top-k, a softmax, a draw."""
    picks = vocabulary.argmax | vocabulary.topk | vocabulary.sampling_random | vocabulary.softmax
    return bool((picks | (vocabulary.classes == SAMPLE))[tokens].any())


def _lm_head(tokens: IntArray, durations: IntArray, vocabulary: KernelVocabulary, evidence: StepEvidence) -> int:
    """Position of lm_head: the first product of about the longest one's time; -1 where there is none.

    It is much wider than the model, or a language model samples from it: on the last tokens of a long prompt it takes
    less time than a block's products. Nothing that convolutions precede is one.
    """
    classes = vocabulary.classes[tokens]
    products = np.flatnonzero(classes == GEMM)
    if not len(products) or (SAMPLE not in classes and has_pooler(tokens, vocabulary)):
        return -1
    times = durations[products]
    head = int(products[(times >= _LIKE_THE_LONGEST * times.max()).argmax()])
    if (classes[:head] == CONV).any():
        return -1
    wide = evidence.typical_ns > 0 and durations[head] >= _WIDE * evidence.typical_ns
    # A recording may end before the sampler: then the rows gathered for it, or logits gathered from all ranks, tell.
    for_tokens = _samples(tokens[head:], vocabulary) or EMBED in classes[:head] or COMM in classes[head:]
    return head if wide or (evidence.serves and for_tokens) else -1


def _unnamed_after(position: int, head: int, tokens: IntArray, vocabulary: KernelVocabulary) -> str:
    """Role of a kernel after a pass that its name does not tell: a piece of the final norm, or of the sampler."""
    may_norm = vocabulary.bare_norm[tokens[position]] or position < head
    if may_norm and _near_norm(position, tokens, vocabulary):
        return "norm"
    return "sampler" if position > head >= 0 and vocabulary.classes[tokens[position]] != CONV else "other"


def _near_norm(position: int, tokens: IntArray, vocabulary: KernelVocabulary) -> bool:
    near = tokens[max(position - _NORM_REACH, 0) : position + _NORM_REACH + 1]
    return bool(vocabulary.bare_norm[near].any())
