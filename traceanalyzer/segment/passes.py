"""Passes through the layers of a model within a step: the model's, and those of a draft model beside it.

    main: 0 1 2 ... 31 | norm, lm_head, sampler | draft: 32 | norm, lm_head, sampler | draft: 33 | ...

A pass ends where something that no block holds normalises, and something multiplies, samples or looks up. Which passes
are a draft model's shows in their depth only; a tower of another kind (an image encoder before its language model) is
told apart by its place and by the phase: it does not run in a decode step, and runs before the model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl

from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.tokens import EMBED, GEMM, NORM, SAMPLE, ByteArray, IntArray, KernelVocabulary
from traceanalyzer.wording import percent, plural
from traceanalyzer.words import PassKind

_SHALLOWER = 2
"""A draft model has at minimum so many times fewer blocks than the model it drafts for. Chosen, not fitted."""
_ENDS = (GEMM, SAMPLE, EMBED)


def with_drafts(cut: Cut, tokens: IntArray, vocabulary: KernelVocabulary, phase: str) -> Cut:
    """Return the cut with its passes told apart, where some are a draft model's.

    Args:
        cut: the blocks of the step.
        tokens: token of each event of the step.
        vocabulary: what the tokens are.
        phase: of the step; a draft model runs where tokens are generated.
    """
    if cut.count < 2 or cut.pass_of is not None or phase not in ("decode", "mixed", "prefill"):
        return cut
    pass_of = _passes(cut, vocabulary.classes[tokens])
    depths = np.bincount(pass_of)
    deepest = int(depths.argmax())
    others = np.delete(depths, deepest)
    # An encoder's tower runs before its model; a draft model's pass may do so in a decode step only.
    misplaced = deepest > 0 and phase != "decode"
    if not len(others) or misplaced or (others * _SHALLOWER > depths[deepest]).any():
        return cut
    kinds: tuple[PassKind, ...] = tuple("main" if number == deepest else "draft" for number in range(len(depths)))
    return replace(cut, pass_kinds=kinds, pass_of=pass_of)


def _passes(cut: Cut, classes: ByteArray) -> IntArray:
    """The pass of each block: another one begins after events of no block that end a pass."""
    where = np.flatnonzero(cut.block_of >= 0)
    blocks = cut.block_of[where]
    first = np.full(cut.count, len(cut.block_of), dtype=np.int64)
    last = np.full(cut.count, -1, dtype=np.int64)
    np.minimum.at(first, blocks, where)
    np.maximum.at(last, blocks, where)
    outside = cut.block_of < 0
    ended = np.ones(cut.count - 1, dtype=np.bool_)
    for wanted in (classes == NORM, np.isin(classes, _ENDS)):
        until = np.concatenate(([0], np.cumsum(wanted & outside)))
        ended &= until[np.maximum(first[1:], last[:-1] + 1)] > until[last[:-1] + 1]
    return np.concatenate(([0], np.cumsum(ended))).astype(np.int64)


def passes_in_words(steps: pl.DataFrame) -> str | None:
    """Say which passes run beside the model's in most of some steps, and what share of the blocks' time is a draft's.

    Args:
        steps: rows of STEP_SCHEMA.
    """
    several = steps.filter(pl.col("passes").list.len() > 1)
    if several.is_empty():
        return None
    row = several.row(0, named=True)
    kinds = Counter(one["kind"] for one in row["passes"])
    if kinds["micro_batch"]:
        return f"each {kinds['micro_batch']} times, for micro-batches that run at the same time"
    drafts = [one for one in row["passes"] if one["kind"] == "draft"]
    every = [one for passes in several["passes"].to_list() for one in passes]
    spent = sum(one["event_sum_ns"] for one in every if one["kind"] == "draft")
    share = spent / max(sum(one["event_sum_ns"] for one in every), 1)
    depths = sorted({one["blocks"] for one in drafts})
    deep = " or ".join(str(depth) for depth in depths)
    text = f"{plural(len(drafts), 'draft pass')} of {deep} {'block' if depths == [1] else 'blocks'}"
    text += f" ({percent(share)} of the blocks' time)"
    return text + _verified(row["tokens"], row["requests"])


def _verified(tokens: int | None, requests: int | None) -> str:
    if not tokens or not requests or tokens <= requests:
        return ""
    each = tokens / requests
    return f", {tokens:,} tokens verified" + (f" ({each:.0f} per sequence)" if tokens % requests == 0 else "")
