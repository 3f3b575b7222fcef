"""Sizes of collectives that the trace states: arguments of NCCL's kernels, or of the op that called for them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from traceanalyzer.names.collectives import bus_factor, collective, dtype_bytes
from traceanalyzer.trace import Trace

CALL = "record_param_comms"
"""Op in which PyTorch records the arguments of a collective, around its launch."""


def with_messages(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Add wire_bytes, bytes that a rank sends for a collective as the trace states it, and message, that in words.

    The rate is that of a ring: the message times the bus factor of nccl-tests (2 (n - 1) / n for an all-reduce over n
    ranks). Null for kernels other than communication, and where kind, size or group are not stated.

    Args:
        trace: for the ops and launches.
        kernels: with index, name, role, correlation, external_id and extra.
    """
    own = kernels.filter(pl.col("role") == "communication").select(
        "index", "correlation", "external_id", pl.col("name", "extra").cast(pl.String)
    )
    stated = _with_calls(trace, own) if own["extra"].null_count() else own
    distinct = stated.select("name", "extra").unique().filter(pl.col("extra").is_not_null())
    read = [_read(name, extra) for name, extra in distinct.iter_rows()]
    table = distinct.with_columns(
        wire_bytes=pl.Series([size for size, _ in read], dtype=pl.Float64),
        message=pl.Series([text for _, text in read], dtype=pl.String),
    )
    sizes = stated.join(table, on=["name", "extra"], how="left").select("index", "wire_bytes", "message")
    return kernels.join(sizes, on="index", how="left", maintain_order="left")


def _with_calls(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Fill in the arguments of the op that launched a kernel where it has none of its own."""
    calls = (
        trace.events_of("cpu_op")
        .filter(pl.col("name").cast(pl.String) == CALL, pl.col("extra").is_not_null())
        .select("external_id", call=pl.col("extra").cast(pl.String))
        .unique("external_id", keep="last", maintain_order=True)
        .collect()
    )
    if calls.is_empty():
        return kernels
    launches = trace.launches.select("correlation", launched="external_id").unique("correlation", keep="first")
    return (
        kernels.join(launches, on="correlation", how="left", maintain_order="left")
        .with_columns(pl.coalesce("external_id", "launched").alias("external_id"))
        .join(calls, on="external_id", how="left", maintain_order="left")
        .with_columns(pl.coalesce("extra", "call").alias("extra"))
        .drop("launched", "call")
    )


def _read(name: str, extra: str) -> tuple[float | None, str | None]:
    arguments = _arguments(extra)
    stated, dtype = arguments.get("Collective name"), arguments.get("dtype")
    call = collective(name, stated if isinstance(stated, str) else None)
    element = dtype_bytes(dtype) if isinstance(dtype, str) else None
    elements = max(_count(arguments.get("In msg nelems")), _count(arguments.get("Out msg nelems")))
    ranks = _count(arguments.get("Group size"))
    factor = bus_factor(call.kind, ranks) if call else None
    if call is None or element is None or factor is None or not elements:
        return None, None
    size = elements * element
    words = f"{call.kind} of {size:,} bytes over {ranks} ranks: measured, as the trace states the message"
    return factor * size, words


def _arguments(extra: str) -> dict[str, Any]:
    try:
        value = json.loads(extra)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    """A number of elements or ranks; 0 for anything else."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 48 else 0
