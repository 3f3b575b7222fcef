"""What a step is made of once its blocks are known: roles, kinds and variants."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.outer_roles import outer_roles, step_evidence
from traceanalyzer.segment.roles import block_roles, role_codes
from traceanalyzer.segment.segment_frames import StepContent
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import ByteArray, IntArray, KernelVocabulary
from traceanalyzer.segment.towers import towers_of
from traceanalyzer.segment.variants import VariantLabels, tell_apart

_OUTPUT = int(role_codes(["o_proj"])[0])


def describe(
    own: IntArray,
    durations: IntArray,
    cut: Cut,
    vocabulary: KernelVocabulary,
    labels: VariantLabels,
    step: StepEvents,
) -> StepContent:
    """Return what a step's events are, block by block.

    Args:
        own: token of each event of the step.
        durations: ns of each; over steps with the same kernels, their median.
        cut: the step's blocks.
        vocabulary: what the tokens are.
        labels: names variants.
        step: the step, or one of those with the same kernels; steps of one phase and depth share the names of variants.
    """
    order, bounds = _members(cut)
    blocks = [own[order[a:b]] for a, b in pairwise(bounds)]
    times = [durations[order[a:b]] for a, b in pairwise(bounds)]
    towers = None if labels.generates else towers_of(own, cut.block_of, blocks, vocabulary)
    drafted = [cut.pass_kinds[number] == "draft" for number in (cut.pass_of if cut.pass_of is not None else ())]
    apart = tell_apart(blocks, times, vocabulary, towers=towers, generates=labels.generates, drafted=drafted)
    roles = np.full(len(own), -1, dtype=np.int8)
    memo: dict[bytes, ByteArray] = {}
    for number, block in enumerate(blocks):
        key = block.tobytes()
        if key not in memo:
            memo[key] = role_codes(block_roles(block, vocabulary))
        roles[order[bounds[number] : bounds[number + 1]]] = memo[key]
    marked = step.source in ("vllm", "sglang", "atom")
    evidence = step_evidence(own, durations, roles == _OUTPUT, vocabulary, marked=marked)
    outer = outer_roles(own, durations, cut.block_of, vocabulary, evidence)
    roles[list(outer)] = role_codes(list(outer.values()))
    depth = labels.depth_of(step.phase, cut.count, complete=step.complete)
    variants = tuple(labels((step.phase, depth), key) for key in apart.keys)
    return StepContent(roles, apart.kinds, variants, apart.period)


def _members(cut: Cut) -> tuple[IntArray, list[int]]:
    """Positions of the events in blocks, block by block, and where each block's begin among them."""
    order = np.argsort(cut.block_of, kind="stable")
    order = order[int((cut.block_of < 0).sum()) :]
    bounds = np.searchsorted(cut.block_of[order], np.arange(cut.count + 1)).tolist()
    return order, bounds
