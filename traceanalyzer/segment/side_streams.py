"""Side streams: what another stream does beside the model, such as preparing the next batch, is no part of its blocks.

    stream 13  n qkv M o n up act down | n qkv M o n up act down | ...     one graph launch
    stream 29        neg copy copy                  copy                   launched one by one

A stream that computes nothing of the model is beside it, unless what it does comes back with every layer (a copy of
each layer's cache) or was started by the graph that runs the layers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl

from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import (
    ACT,
    COMBINE,
    COMM,
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    POSITION,
    ROUTE,
    SAMPLE,
    BoolArray,
    ByteArray,
    IntArray,
    KernelVocabulary,
)

_MODEL = np.zeros(16, dtype=np.bool_)
_MODEL[[NORM, GEMM, EXPERT, MIXER, POSITION, ROUTE, COMBINE, COMM, ACT, SAMPLE]] = True
"""Classes of kernels that a model is made of. A stream with any of them is the model's."""
_LEAST = 2
"""Kernels of a side stream in a step from which on it is judged. Chosen, not fitted: what a single one is for cannot be
told, and the ground truth of a public recording counts it to the block that it runs in."""
_EVERY_LAYER = 0.5
"""Share of the layers in which a side stream must do the same to belong to them. Chosen, not fitted."""


def without_side_streams(
    steps: list[StepEvents], events: pl.DataFrame, tokens: IntArray, vocabulary: KernelVocabulary
) -> tuple[list[StepEvents], list[IntArray]]:
    """Return the steps without what runs beside the model, and that of each step, as positions within the device.

    Args:
        steps: the steps of a device.
        events: its events, with stream, launch_id and graph.
        tokens: token of each of them.
        vocabulary: what the tokens are.
    """
    stream = events["stream"].fill_null(-1).to_numpy()
    if len(np.unique(stream)) < 2:
        return steps, [step.events[:0] for step in steps]
    launch = events["launch_id"].cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    graph = events["graph"].fill_null(False).to_numpy()
    inner, beside = [], []
    for step in steps:
        at, own = step.events, tokens[step.events]
        other = beside_the_model(own, vocabulary.classes[own], stream[at], launch[at], graph[at])
        inner.append(replace(step, events=at[~other]))
        beside.append(at[other])
    return inner, beside


def beside_the_model(
    tokens: IntArray, classes: ByteArray, stream: IntArray, launch: IntArray, graph: BoolArray
) -> BoolArray:
    """Return which events of a step are a side stream's and no part of the model.

    The arguments hold one value for each event of the step, in order of start. Linear in the events.

    Args:
        tokens: token of each event.
        classes: its class.
        stream: its stream.
        launch: id of its launch, -1 where unknown.
        graph: whether the launch was a graph's.
    """
    beside = np.zeros(len(tokens), dtype=np.bool_)
    model = _MODEL[classes]
    if not model.any():
        return beside
    # What runs before the first or after the last kernel of the model is in no block anyway.
    within = np.zeros(len(tokens), dtype=np.bool_)
    first, last = np.flatnonzero(model)[[0, -1]]
    within[first : last + 1] = True
    side = within & ~np.isin(stream, np.unique(stream[model]))
    of_model = np.unique(launch[model & graph])
    side &= ~(graph & np.isin(launch, of_model))
    mixers = np.flatnonzero(classes == MIXER)
    for number in np.unique(stream[side]).tolist():
        own = side & (stream == number)
        if own.sum() >= _LEAST and not _comes_back(tokens, np.flatnonzero(own), mixers):
            beside |= own
    return beside


def _comes_back(tokens: IntArray, own: IntArray, mixers: IntArray) -> bool:
    """Whether a stream does the same between most of the mixers and their next."""
    if len(mixers) < 2:
        return False
    layer = np.searchsorted(mixers, own)
    bounds = np.flatnonzero(np.diff(layer, prepend=-1))
    contents = Counter(tuple(sorted(part.tolist())) for part in np.split(tokens[own], bounds[1:]) if len(part))
    return contents.most_common(1)[0][1] >= _EVERY_LAYER * (len(mixers) - 1)
