"""A trace as frames: one rank's events, and the views of them that analyses start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from traceanalyzer.ingest import Store, TraceMetadata, ingest
from traceanalyzer.ingest.schema import DEVICE_CATEGORIES, LAUNCH_CATEGORIES
from traceanalyzer.problems import TraceError


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's profile.

    Attributes:
        metadata: what the file says about itself.
        events: every complete event, columns of ``ingest.schema.EVENT_SCHEMA``; ``start_ns`` is relative to
            ``metadata.base_ns``. Lazy: a filter or projection reads only what it needs.
    """

    metadata: TraceMetadata
    events: pl.LazyFrame

    @classmethod
    def from_store(cls, store: Store) -> Trace:
        """Open an ingested trace; nothing is read until a view is asked for."""
        base = store.metadata.base_ns
        return cls(store.metadata, store.scan().with_columns(pl.col("start_ns") - base))

    @property
    def rank(self) -> int | None:
        """The rank in its job, or null when the trace does not tell."""
        return self.metadata.rank

    @property
    def cpu_only(self) -> bool:
        """Whether no work on a GPU was recorded, so that leaf CPU ops stand in for kernels."""
        return self._gpu_events.is_empty()

    @cached_property
    def device_events(self) -> pl.DataFrame:
        """Kernels, copies and memsets in order of start; in a CPU-only trace its leaf CPU ops.

        Columns of ``EVENT_SCHEMA`` and ``is_kernel`` (false for copies and memsets). ``device`` is null in a
        CPU-only trace.
        """
        return self._leaf_cpu_ops if self.cpu_only else self._gpu_events

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Host calls that may have started GPU work: those of a runtime or driver category with a correlation."""
        return (
            self.events.filter(
                pl.col("cat").cast(pl.String).is_in(LAUNCH_CATEGORIES), pl.col("correlation").is_not_null()
            )
            .select("index", "name", "pid", "tid", "start_ns", "dur_ns", "correlation", "external_id", "launched_kernel")
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def annotations(self) -> pl.DataFrame:
        """Ranges that user code marked (category user_annotation), in order of start."""
        return (
            self.events.filter(pl.col("cat").cast(pl.String) == "user_annotation")
            .select("index", "name", "pid", "tid", "start_ns", "dur_ns", "external_id")
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def _gpu_events(self) -> pl.DataFrame:
        return (
            self.events.filter(
                pl.col("cat").cast(pl.String).is_in(DEVICE_CATEGORIES),
                pl.col("dur_ns") > 0,
                pl.col("name").is_not_null(),
            )
            .with_columns(is_kernel=pl.col("cat").cast(pl.String) == "kernel")
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def _leaf_cpu_ops(self) -> pl.DataFrame:
        next_start = pl.col("start_ns").shift(-1).over("pid", "tid")
        end = pl.col("start_ns") + pl.col("dur_ns")
        return (
            self.events.filter(pl.col("cat").cast(pl.String) == "cpu_op", pl.col("name").is_not_null())
            .sort("start_ns", -pl.col("dur_ns"), "index")
            .filter(next_start.is_null() | (next_start >= end), pl.col("dur_ns") > 0)
            .with_columns(is_kernel=pl.lit(True), device=pl.lit(None, dtype=pl.Int32))
            .collect()
        )


def open_traces(paths: str | Path | Sequence[str | Path]) -> tuple[Trace, ...]:
    """Open every trace found at the paths (files, directories, archives, stores, URLs), one a rank.

    Raises:
        TraceError: no path holds a usable trace.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    return tuple(Trace.from_store(store) for store in ingest([str(path) for path in given]).stores)


def open_trace(path: str | Path) -> Trace:
    """Open a path that holds exactly one rank's trace.

    The file is ingested on first use and read from the cache after that.

    Raises:
        TraceError: it cannot be used, or holds several traces (use ``open_traces``).
    """
    traces = open_traces(path)
    if len(traces) != 1:
        raise TraceError(str(path), f"holds {len(traces)} traces; open_traces() opens them all")
    return traces[0]
