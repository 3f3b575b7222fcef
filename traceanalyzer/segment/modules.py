"""Blocks from `nn.Module` events, which a recording with stacks of an eager model has: the oracle."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import polars as pl

from traceanalyzer.segment.tokens import IntArray
from traceanalyzer.trace import Trace

_LAYER = re.compile(r"^nn\.Module: (?P<cls>\w*(?:Layer|Block))_(?P<number>\d+)$")
_PATTERN = r"^nn\.Module: \w*(Layer|Block)_\d+$"


def read_layers(trace: Trace) -> pl.DataFrame:
    """Return the calls of transformer blocks: start_ns, end_ns, thread; the outermost ones named Layer or Block.

    Sorted by start; empty in a recording without them.
    """
    calls = (
        trace.events.filter(
            pl.col("cat").cast(pl.String) == "python_function", pl.col("name").cast(pl.String).str.contains(_PATTERN)
        )
        .select(
            pl.col("name").cast(pl.String),
            "start_ns",
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            thread=pl.concat_str(pl.col("pid").cast(pl.String), pl.lit("/"), pl.col("tid").cast(pl.String)),
        )
        .sort("start_ns", -pl.col("end_ns"))
        .collect()
    )
    outermost: list[int] = []
    reached: dict[str, int] = defaultdict(lambda: -(2**62))
    classes: dict[str, int] = defaultdict(int)
    for row, (name, start, end, thread) in enumerate(calls.iter_rows()):
        if start >= reached[thread]:
            outermost.append(row)
            reached[thread] = end
            matched = _LAYER.match(name)
            classes[matched["cls"] if matched else ""] += 1
    layers = calls[outermost]
    if not layers.is_empty() and max(classes.values()) < 2:
        return layers.clear()
    return layers


def blocks_from_layers(layers: pl.DataFrame, launch: IntArray, window: tuple[int, int] | None) -> IntArray | None:
    """Return for each event the block whose call launched it, or -1; None without such calls.

    Args:
        layers: from `read_layers`.
        launch: launch time of each event of the step.
        window: the step's interval on the host's clock; None for the whole recording.
    """
    low, high = window or (-(2**62), 2**62)
    own = layers.filter(pl.col("start_ns").is_between(low, high, closed="left"))
    if own.is_empty():
        return None
    starts, ends = own["start_ns"].to_numpy(), own["end_ns"].to_numpy()
    index = np.searchsorted(starts, launch, side="right") - 1
    inside = (index >= 0) & (launch < ends[np.maximum(index, 0)])
    block = np.where(inside, index, -1)
    used = np.unique(block[block >= 0])
    if not len(used):
        return None
    renumbered = np.full(len(starts), -1)
    renumbered[used] = np.arange(len(used))
    return np.where(block >= 0, renumbered[np.maximum(block, 0)], -1).astype(np.int64)
