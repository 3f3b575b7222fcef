"""Long recordings of many ranks as frames: the steps of a short one, repeated, without writing JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from traceanalyzer.trace import Trace, TraceSet


def repeated(traces: Sequence[Trace], copies: int, directory: Path) -> TraceSet:
    """Repeat every trace's events one after the other, with new ids, and keep them as Parquet in a directory.

    All ranks are repeated with the same period, so that what waited for each other still does.
    """
    ends = [trace.events.select((pl.col("start_ns") + pl.col("dur_ns")).max()).collect().item() for trace in traces]
    starts = [trace.events.select(pl.col("start_ns").min()).collect().item() for trace in traces]
    period = max(ends) - min(starts) + 100_000
    long = tuple(_repeated(trace, copies, period, directory / f"rank{trace.rank}.parquet") for trace in traces)
    return TraceSet(long, tuple(trace.metadata.source for trace in traces), ())


def _repeated(trace: Trace, copies: int, period: int, path: Path) -> Trace:
    events = trace.events.collect()
    ids = {name: (events[name].max() or 0) for name in ("correlation", "external_id")}
    numbers = pl.DataFrame({"copy": range(copies)}, schema={"copy": pl.Int64})
    shifted = [pl.col("start_ns") + pl.col("copy") * period, pl.col("index") + pl.col("copy") * events.height]
    for name, largest in ids.items():
        assert isinstance(largest, int)
        shifted.append(pl.col(name) + (pl.col("copy") * (largest + 1)).cast(pl.UInt64))
    events.join(numbers, how="cross").with_columns(shifted).drop("copy").write_parquet(path)
    return Trace(trace.metadata, pl.scan_parquet(path))
