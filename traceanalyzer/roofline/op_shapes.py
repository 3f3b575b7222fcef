"""The shapes that a trace gives for a kernel: Input Dims of the op that launched it, directly or at graph capture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from traceanalyzer.roofline.graph_capture import SHAPE_COLUMNS, join_captures, of_captures, thread_key
from traceanalyzer.trace import Trace

LOOK_BACK = 64
"""Ops before a launch among which the one that encloses it is looked for. Chosen, not fitted."""


def with_shapes(trace: Trace, kernels: pl.DataFrame, captures: Sequence[Trace] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Add SHAPE_COLUMNS to kernels, and say how many of a graph's kernels the capture named.

    An eager kernel's External id names its op; without one (Triton) it is the innermost op that encloses the launch.
    """
    ops = ops_of(trace)
    launches = trace.launches.select(
        "correlation",
        launch_external="external_id",
        thread=thread_key(),
        launched_ns="start_ns",
    ).unique("correlation", keep="first", maintain_order=True)
    eager = kernels.select("index", "correlation", "external_id", "graph").join(
        launches, on="correlation", how="left", maintain_order="left"
    )
    alone = ~pl.col("graph").fill_null(False)
    eager = eager.with_columns(
        external_id=pl.when(alone).then(pl.coalesce("external_id", "launch_external")),
        launched_ns=pl.when(alone).then(pl.col("launched_ns")),
    )
    shapes = _with_ops(eager, ops).select("index", *SHAPE_COLUMNS)
    notes: list[str] = []
    if captures:
        launches = of_captures(captures, lambda one, launches: _with_ops(launches, ops_of(one)))
        joined, notes = join_captures(kernels, launches)
        shapes = shapes.join(joined, on="index", how="left", suffix="_captured", maintain_order="left").with_columns(
            pl.coalesce(column, f"{column}_captured").alias(column) for column in SHAPE_COLUMNS
        )
    return kernels.join(shapes.select("index", *SHAPE_COLUMNS), on="index", how="left", maintain_order="left"), notes


def ops_of(trace: Trace) -> pl.DataFrame:
    """Return the CPU ops with Input Dims, in order of start: index, external_id, op, dims, types, concrete, thread."""
    return (
        trace.events_of("cpu_op")
        .select(
            "index",
            "external_id",
            "start_ns",
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            thread=thread_key(),
            op="name",
            dims="input_dims",
            types="input_types",
            concrete="concrete_inputs",
        )
        .sort("start_ns", "index")
        .collect()
    )


def _with_ops(launches: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Add SHAPE_COLUMNS of the op that an External id names, else of the innermost one around the launch."""
    named = launches.join(
        ops.unique("external_id", keep="last", maintain_order=True).select("external_id", op_index="index"),
        on="external_id",
        how="left",
        maintain_order="left",
    )
    op_index = named["op_index"].fill_null(pl.Series(enclosing(named, ops), dtype=pl.Int64))
    described = ops.filter(pl.col("dims").is_not_null()).select(
        "op", "dims", "types", "concrete", op_index="index", call=pl.col("index")
    )
    return named.with_columns(op_index=op_index).join(described, on="op_index", how="left", maintain_order="left")


def enclosing(launches: pl.DataFrame, ops: pl.DataFrame) -> list[int | None]:
    """Return the index of the innermost op that encloses each launch on its thread, or None.

    Args:
        launches: thread and launched_ns (None where nothing is to be looked for), op_index (None likewise).
        ops: as ``ops_of`` returns them.
    """
    answer: list[int | None] = [None] * launches.height
    wanted = launches.with_row_index("row").filter(
        pl.col("launched_ns").is_not_null(), pl.col("op_index").is_null(), pl.col("thread").is_not_null()
    )
    for (thread,), group in wanted.group_by("thread"):
        own = ops.filter(pl.col("thread") == thread)
        if own.is_empty():
            continue
        start, end, index = (own[name].to_numpy() for name in ("start_ns", "end_ns", "index"))
        at = group["launched_ns"].to_numpy()
        place = np.searchsorted(start, at, side="right") - 1
        open_ = place >= 0
        for _ in range(LOOK_BACK):
            missed = open_ & (end[np.maximum(place, 0)] < at)
            if not missed.any():
                break
            place[missed] -= 1
            open_ = place >= 0
        fits = open_ & (end[np.maximum(place, 0)] >= at)
        for row, position, good in zip(group["row"].to_list(), place.tolist(), fits.tolist(), strict=True):
            answer[row] = int(index[position]) if good else None
    return answer
