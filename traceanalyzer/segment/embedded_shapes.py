"""Phases that no marker tells, from the shape of what the model embeds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl

from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.trace import Trace


def read_embeddings(trace: Trace) -> pl.DataFrame:
    """Return the embedding look-ups of token ids laid out [sequences, tokens]: start_ns, end_ns, sequences, length.

    Needs a recording with shapes of an engine that keeps sequences apart (a plain forward pass does, servers that
    flatten their batch do not). Empty otherwise.
    """
    embedded = (
        trace.events.filter(
            pl.col("cat").cast(pl.String) == "cpu_op",
            pl.col("name").cast(pl.String) == "aten::embedding",
            pl.col("input_dims").is_not_null(),
        )
        .select(
            "start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"), pl.col("input_dims").cast(pl.String)
        )
        .sort("start_ns")
        .collect()
    )
    rows = [(start, end, *ids) for start, end, dims in embedded.iter_rows() if (ids := _ids(dims)) is not None]
    schema = {"start_ns": pl.Int64, "end_ns": pl.Int64, "sequences": pl.Int64, "length": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _ids(dims: str) -> tuple[int, int] | None:
    try:
        shapes = json.loads(dims)
    except ValueError:
        return None
    ids = shapes[1] if isinstance(shapes, list) and len(shapes) > 1 else None
    if not isinstance(ids, list) or len(ids) != 2 or not all(isinstance(n, int) and n > 0 for n in ids):
        return None
    return ids[0], ids[1]


def tell_phases(steps: list[StepEvents], embeddings: pl.DataFrame, events: pl.DataFrame) -> list[StepEvents]:
    """Fill in phase, requests and tokens of steps of unknown phase that launched one of the embeddings.

    One token a sequence is a decode step, more are a prefill.
    """
    if embeddings.is_empty():
        return steps
    result = []
    starts, ends = embeddings["start_ns"].to_numpy(), embeddings["end_ns"].to_numpy()
    launch = events["launch_ns"].fill_null(-(2**62)).to_numpy()
    for step in steps:
        if step.phase != "unknown" or not step.complete:
            result.append(step)
            continue
        own = launch[step.events]
        at = np.searchsorted(starts, own, side="right") - 1
        inside = at[(at >= 0) & (own < ends[np.maximum(at, 0)])]
        if not len(inside):
            result.append(step)
            continue
        _, _, sequences, length = embeddings.row(int(inside.min()))
        phase = "decode" if length == 1 else "prefill"
        told = replace(step, phase=phase, phase_source="inferred", requests=sequences, tokens=sequences * length)
        result.append(told)
    return result
