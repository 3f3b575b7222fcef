"""The device events of all ranks in one frame, on one clock, with communication recognised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import Any

import polars as pl

from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.names.collectives import NOT_A_TRANSFER, collective, dtype_bytes
from traceanalyzer.segment import Segmentation, segment

EVENT_COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(),
    "start_ns": pl.Int64(),  # on the clock common to all ranks, from the earliest event of all
    "dur_ns": pl.Int64(),
    "name": pl.Categorical(),
    "is_kernel": pl.Boolean(),  # false for copies and memsets
    "step": pl.Int32(),  # of its rank; null outside steps
    "whole": pl.Boolean(),  # in a complete step
    "counts": pl.Boolean(),  # in a complete step that is not a dummy
    "block": pl.Int32(),
    "role": pl.Categorical(),
    "is_comm": pl.Boolean(),
    "kind": pl.String(),  # a kind of names.collectives; null for other kernels
    "direction": pl.String(),  # send or recv, where known
    "members": pl.String(),  # ranks of the process group as JSON text, where the trace gives them
    "group_size": pl.Int32(),
    "peer": pl.Int32(),  # the other rank of a point-to-point transfer, where known
    "bytes": pl.Int64(),  # message size, the larger side
}
"""One row per device event of any rank; of a CPU a compute op, or the run of a collective on its own thread."""

_NO_ARGUMENTS: dict[str, Any] = dict.fromkeys(("kind", "direction", "members", "group_size", "peer", "bytes"))


def rank_events(members: Sequence[Member]) -> pl.DataFrame:
    """Stack the events of all ranks, columns of EVENT_COLUMNS, in order of rank and start."""
    origins = clock_origins(members)
    frames = [_events_of(member, origins[member.rank]) for member in members]
    stacked = pl.concat(frames)
    first = stacked["start_ns"].min()
    shift = first if isinstance(first, int) else 0
    return stacked.with_columns(pl.col("start_ns") - shift)


def clock_origins(members: Sequence[Member]) -> dict[int, int]:
    """What to add to each rank's times, ns: to Unix time where every file gives its base, else to the file clock."""
    based = all(member.trace.metadata.base_time_ns is not None for member in members)
    return {
        member.rank: member.trace.metadata.base_ns + ((member.trace.metadata.base_time_ns or 0) if based else 0)
        for member in members
    }


def _events_of(member: Member, origin: int) -> pl.DataFrame:
    cut = segment(member.trace)
    own = pl.col("device").is_null() if member.device is None else pl.col("device") == member.device
    events = cut.events.filter(own).select(
        "start_ns", "dur_ns", "name", "is_kernel", "step", "block", "role", "extra", "input_dims", "input_types"
    )
    if member.trace.cpu_only:
        events = _with_runs_of_collectives(member, events, cut)
    whole = cut.steps.filter(own, "complete").select("step", counts=pl.col("phase") != "dummy", whole=pl.lit(True))
    read = _readings(events)
    return (
        events.join(read, on=["name", "extra", "input_dims", "input_types"], how="left", nulls_equal=True)
        .join(whole, on="step", how="left")
        .with_columns(
            pl.lit(member.rank, dtype=pl.Int32).alias("rank"),
            pl.col("start_ns") + origin,
            pl.col("whole", "counts").fill_null(value=False),
            pl.col("role").cast(pl.Categorical),
            pl.col("kind").is_not_null().alias("is_comm"),
        )
        .sort("start_ns", maintain_order=True)
        .select(pl.col(name).cast(dtype) for name, dtype in EVENT_COLUMNS.items())
    )


def _with_runs_of_collectives(member: Member, events: pl.DataFrame, cut: Segmentation) -> pl.DataFrame:
    """Put the runs of collectives on backend threads (`gloo:all_reduce`) in the place of the ops that ask for them."""
    runs = (
        member.trace.events.filter(pl.col("cat").cast(pl.String) == "user_annotation", pl.col("dur_ns") > 0)
        .select("start_ns", "dur_ns", "name", "extra", "input_dims", "input_types")
        .collect()
    )
    names = [name for name in runs["name"].unique().cast(pl.String).to_list() if collective(name)]
    runs = runs.filter(pl.col("name").cast(pl.String).is_in(names))
    if runs.is_empty():
        return events
    asked = [name for name in events["name"].unique().cast(pl.String).to_list() if _asks_for_one(name)]
    windows = cut.steps.select("step", "start_ns").sort("start_ns")
    placed = runs.sort("start_ns").join_asof(windows, on="start_ns", strategy="backward")
    blocks = cut.blocks.select("block", "start_ns", of="step").sort("start_ns")
    placed = placed.join_asof(blocks, on="start_ns", strategy="backward").with_columns(
        pl.when(pl.col("of") == pl.col("step")).then("block").alias("block")
    )
    placed = placed.with_columns(is_kernel=pl.lit(True), role=pl.lit("communication")).select(events.columns)
    return pl.concat([events.filter(~pl.col("name").cast(pl.String).is_in(asked)), placed]).sort("start_ns")


def _asks_for_one(name: str) -> bool:
    return collective(name) is not None or NOT_A_TRANSFER.search(name) is not None


def _readings(events: pl.DataFrame) -> pl.DataFrame:
    """What every distinct kernel with its arguments says about communication."""
    keys = ["name", "extra", "input_dims", "input_types"]
    distinct = events.select(keys).unique()
    rows = [_reading(*row) for row in distinct.cast(pl.String).iter_rows()]
    schema = {key: EVENT_COLUMNS[key] for key in _NO_ARGUMENTS}
    return pl.concat([distinct, pl.DataFrame(rows, schema=schema, orient="row")], how="horizontal")


def _reading(name: str, extra: str | None, dims: str | None, types: str | None) -> dict[str, Any]:
    decoded = _decoded(extra)
    arguments = decoded if isinstance(decoded, dict) else {}
    stated = arguments.get("Collective name")
    call = collective(name, stated if isinstance(stated, str) else None)
    if call is None:
        return _NO_ARGUMENTS
    size = _integer(arguments.get("Group size"))
    return {
        "kind": call.kind,
        "direction": call.direction,
        "members": _ranks(arguments.get("Process Group Ranks"), size),
        "group_size": size,
        "peer": _integer(arguments.get("Dst Rank" if call.direction == "send" else "Src Rank")),
        "bytes": _message_bytes(arguments) or _tensor_bytes(dims, types),
    }


def _decoded(text: str | None) -> Any:
    """Return what a text says in JSON; None where there is none, or it is damaged."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _ranks(value: Any, size: int | None) -> str | None:
    """The group's ranks as JSON text; None where the profiler shortened the list."""
    if isinstance(value, str):
        value = _decoded(value)
    if not isinstance(value, list) or not value or not all(isinstance(rank, int) for rank in value):
        return None
    ranks = sorted(set(value))
    return json.dumps(ranks) if size is None or len(ranks) == size else None


def _message_bytes(arguments: dict[str, Any]) -> int | None:
    element = dtype_bytes(arguments.get("dtype")) if isinstance(arguments.get("dtype"), str) else None
    counts = [_integer(arguments.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    largest = max((count for count in counts if count), default=None)
    return None if element is None or largest is None else element * largest


def _tensor_bytes(dims: str | None, types: str | None) -> int | None:
    """Bytes of the only tensor of an op on the CPU, from its shape and type."""
    shapes, names = _decoded(dims), _decoded(types)
    if not isinstance(shapes, list) or len(shapes) != 1 or not isinstance(names, list) or len(names) != 1:
        return None
    element = dtype_bytes(names[0]) if isinstance(names[0], str) else None
    if element is None or not _is_shape(shapes[0]):
        return None
    return element * prod(shapes[0])


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(size, int) and size > 0 for size in value)
