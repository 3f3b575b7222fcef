"""Steps of a trace without markers: from graph launches and the kernel sequence."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl

from traceanalyzer.segment.alignment import begins
from traceanalyzer.segment.anchors import find_anchors
from traceanalyzer.segment.step_period import periodic_borders
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import (
    EMBED,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    SAMPLE,
    BoolArray,
    IntArray,
    KernelVocabulary,
)

_COMMON = 0.6
"""An index or embedding kernel as frequent as this share of the anchors belongs to the blocks. Chosen, not fitted."""
_TRIED = 16
"""Ends of passes in a step that are tried as the end of the step; bounds the work. Chosen, not fitted."""
_ONE_GRAPH = 0.5
"""Share of a step's events that one launch must have started for the step to be a graph's. Chosen, not fitted."""
_FEW = 4
"""Kernels that must agree one by one to be the start of a step. Chosen, not fitted."""
_SHALLOWER = 2
"""A draft model has at minimum so many times fewer mixing kernels than the model it drafts for. Chosen, not fitted."""
_HOST_INPUT = re.compile(r"HtoD|HostToDevice", re.IGNORECASE)


def infer_steps(
    events: pl.DataFrame, where: IntArray, tokens: IntArray, vocabulary: KernelVocabulary
) -> list[StepEvents]:
    """Cut events into steps where a pass through the model ends: after sampling, before the next embedding.

    Args:
        events: the device's events.
        where: positions of those to place.
        tokens: token of every event of the device.
    """
    if not len(where):
        return []
    own = tokens[where]
    clock = _host_or_device_clock(events)[where]
    borders = _borders(own, clock, vocabulary) or periodic_borders(own, _idle(events, where), vocabulary)
    pieces = _with_drafts([piece for piece in np.split(where, borders) if len(piece)], tokens, vocabulary)
    source = _source(events, pieces)
    return _mark_partial([StepEvents(piece, source) for piece in pieces], tokens, vocabulary)


def split_last(
    events: pl.DataFrame, steps: list[StepEvents], tokens: IntArray, vocabulary: KernelVocabulary
) -> list[StepEvents]:
    """Split the last marked step where a pass through the model ends in it and another begins the same way.

    The recording then stopped before the last step's marker was written, with no whole step beside it.
    """
    if not steps or steps[-1].label is None:
        return steps
    last = steps[-1]
    own = tokens[last.events]
    if any(np.array_equal(own, tokens[step.events]) for step in steps[:-1]):
        return steps
    borders = _borders(own, _host_or_device_clock(events)[last.events], vocabulary)
    for border in borders[-_TRIED:]:
        if begins(own[border:], own[:border]):
            rest = StepEvents(last.events[border:], last.source, complete=False)
            return [*steps[:-1], replace(last, events=last.events[:border]), rest]
    return steps


def _host_or_device_clock(events: pl.DataFrame) -> IntArray:
    clock = events.select(pl.coalesce("launch_ns", "start_ns"))["launch_ns"].to_numpy()
    return np.asarray(clock, dtype=np.int64)


def _idle(events: pl.DataFrame, where: IntArray) -> IntArray:
    """The device's pause before each event, in ns."""
    start, dur = events["start_ns"].to_numpy()[where], events["dur_ns"].to_numpy()[where]
    reached = np.maximum.accumulate(start + dur)
    return np.concatenate(([0], np.maximum(start[1:] - reached[:-1], 0))).astype(np.int64)


def _borders(tokens: IntArray, clock: IntArray, vocabulary: KernelVocabulary) -> list[int]:
    classes = vocabulary.classes[tokens]
    anchors = find_anchors(tokens, vocabulary)
    sampling = np.flatnonzero(classes == SAMPLE).tolist()
    embedding = np.flatnonzero(classes == EMBED).tolist()
    embedding = _passes(tokens, embedding, len(anchors))
    products = np.flatnonzero((classes == GEMM) | (classes == EXPERT)).tolist()
    gaps = list(pairwise(anchors))
    borders: list[int] = []
    behind: Counter[int] = Counter()
    for one, two in gaps:
        last_sampling = _last_in(sampling, one.end, two.start)
        from_here = last_sampling
        if from_here is None:
            # Rows are gathered for the product to the logits, too: a step begins after the last product of another.
            last_embedding = _last_in(embedding, one.end, two.start)
            last_product = None if last_embedding is None else _last_in(products, one.end, last_embedding)
            from_here = one.end if last_product is None else last_product
        first_embedding = _first_in(embedding, from_here, two.start)
        if last_sampling is None and first_embedding is None:
            continue
        stop = two.start if first_embedding is None else first_embedding
        candidates = clock[from_here + 1 : stop + 1] - clock[from_here:stop]
        border = from_here + 1 + int(candidates.argmax())
        borders.append(border)
        if last_sampling is not None:
            behind[border - last_sampling] += 1
    if anchors and sampling and sampling[-1] > anchors[-1].end:
        known = behind.most_common(1)[0][0] if behind else _begun_again(tokens, clock, sampling[-1])
        if known is not None and sampling[-1] + known < len(tokens):
            borders.append(sampling[-1] + known)
    return borders


def _begun_again(tokens: IntArray, clock: IntArray, sampling: int) -> int | None:
    """Events from the last sampling to the end of the only whole step: the longest pause, if its start comes next."""
    pauses = np.diff(clock[sampling:])
    if not len(pauses):
        return None
    behind = 1 + int(pauses.argmax())
    rest = tokens[sampling + behind :]
    again = np.array_equal(rest, tokens[: len(rest)]) or (
        len(rest) > _FEW and begins(rest, tokens[: sampling + behind])
    )
    return behind if again else None


def _passes(tokens: IntArray, embedding: list[int], anchors: int) -> list[int]:
    """Leave out index kernels that come with most anchors: they are part of the blocks."""
    counts = Counter(tokens[embedding].tolist())
    return [p for p in embedding if counts[int(tokens[p])] <= _COMMON * anchors]


def _first_in(positions: list[int], low: int, high: int) -> int | None:
    index = bisect_right(positions, low)
    return positions[index] if index < len(positions) and positions[index] < high else None


def _last_in(positions: list[int], low: int, high: int) -> int | None:
    index = bisect_left(positions, high) - 1
    return positions[index] if index >= 0 and positions[index] > low else None


def _with_drafts(pieces: list[IntArray], tokens: IntArray, vocabulary: KernelVocabulary) -> list[IntArray]:
    """Join the passes of a draft model to the pass that they follow (speculative decoding).

    A step gets its inputs from the host before its first block. A pass without any, much shallower than the one that
    had them, goes on from what that one left on the GPU. Where no pass has inputs, as many shallow ones must follow
    every deep one.
    """
    given = np.array([_HOST_INPUT.search(name) is not None for name in vocabulary.names], dtype=np.bool_)
    depths = [int((vocabulary.classes[tokens[piece]] == MIXER).sum()) for piece in pieces]
    fed = [_fed(tokens[piece], given, vocabulary) for piece in pieces]
    if not any(fed):
        fed = _deep(depths)
    joined: list[list[IntArray]] = []
    depth = 0
    for piece, own, inputs in zip(pieces, depths, fed, strict=True):
        if not inputs and 0 < own * _SHALLOWER <= depth:
            joined[-1].append(piece)
        else:
            joined.append([piece])
            depth = own if inputs else 0
    return [np.concatenate(parts) for parts in joined]


def _fed(own: IntArray, given: BoolArray, vocabulary: KernelVocabulary) -> bool:
    """Whether a pass gets inputs from the host before its first block."""
    mixers = np.flatnonzero(vocabulary.classes[own] == MIXER)
    return bool(given[own[: mixers[0]] if len(mixers) else own].any())


def _deep(depths: list[int]) -> list[bool]:
    """Which passes are the model's, where each is followed by as many much shallower ones; none where they are not."""
    deep = [depth * _SHALLOWER > max(depths, default=0) for depth in depths]
    at = [number for number, own in enumerate(deep) if own]
    apart = set(np.diff(at).tolist()) if len(at) > 1 else {len(depths)}
    regular = at[:1] == [0] and len(apart) == 1 and apart != {1}
    return deep if regular else [False] * len(depths)


def _source(events: pl.DataFrame, pieces: list[IntArray]) -> str:
    """graph_launch where one launch started most of every step, else inferred."""
    launches = events["launch_id"]
    graph = events["graph"]
    for piece in pieces:
        own = launches.gather(piece).filter(graph.gather(piece))
        counts = own.value_counts(sort=True)
        if counts.is_empty() or counts["count"][0] < _ONE_GRAPH * len(piece):
            return "inferred"
    return "graph_launch"


def _mark_partial(steps: list[StepEvents], tokens: IntArray, vocabulary: KernelVocabulary) -> list[StepEvents]:
    """A first step that holds only the end of another's sequence began before the recording.

    One that lacks only what surrounds a model (the copy of the last step's tokens to the host) is whole.
    """
    if len(steps) < 2:
        return steps
    first = tokens[steps[0].events]
    for step in steps[1:]:
        other = tokens[step.events]
        lacking = other[: len(other) - len(first)]
        computes = np.isin(vocabulary.classes[lacking], (NORM, GEMM, EXPERT, MIXER, EMBED)).any()
        if len(lacking) and computes and np.array_equal(other[len(lacking) :], first):
            return [replace(steps[0], complete=False), *steps[1:]]
    return steps
