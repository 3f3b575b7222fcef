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
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import EMBED, MIXER, SAMPLE, IntArray, KernelVocabulary

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
    borders = _borders(own, clock, vocabulary)
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


def _borders(tokens: IntArray, clock: IntArray, vocabulary: KernelVocabulary) -> list[int]:
    classes = vocabulary.classes[tokens]
    anchors = find_anchors(tokens, vocabulary)
    sampling = np.flatnonzero(classes == SAMPLE).tolist()
    embedding = np.flatnonzero(classes == EMBED).tolist()
    embedding = _passes(tokens, embedding, len(anchors))
    gaps = list(pairwise(anchors))
    borders: list[int] = []
    behind: Counter[int] = Counter()
    for one, two in gaps:
        last_sampling = _last_in(sampling, one.end, two.start)
        from_here = one.end if last_sampling is None else last_sampling
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
    had them, goes on from what that one left on the GPU. Where no pass has inputs nothing is joined.
    """
    given = np.array([_HOST_INPUT.search(name) is not None for name in vocabulary.names], dtype=np.bool_)
    joined: list[list[IntArray]] = []
    depth = 0
    for piece in pieces:
        own = tokens[piece]
        mixers = np.flatnonzero(vocabulary.classes[own] == MIXER)
        fed = bool(given[own[: mixers[0]] if len(mixers) else own].any())
        if not fed and 0 < len(mixers) * _SHALLOWER <= depth:
            joined[-1].append(piece)
        else:
            joined.append([piece])
            depth = len(mixers) if fed else 0
    return [np.concatenate(parts) for parts in joined]


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
    """A first step that holds only the end of another's sequence began before the recording."""
    if len(steps) < 2:
        return steps
    first = tokens[steps[0].events]
    for step in steps[1:]:
        other = tokens[step.events]
        if len(other) > len(first) and np.array_equal(other[len(other) - len(first) :], first):
            return [replace(steps[0], complete=False), *steps[1:]]
    return steps
