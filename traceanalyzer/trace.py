"""A trace as frames: one rank's events, and the views of them that analyses start from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from traceanalyzer.notebook import facts_html
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read import Effort, IngestResult, Store, TraceMetadata, TraceSource, ingest
from traceanalyzer.read.compute_ops import compute_ops
from traceanalyzer.read.derived import Derived
from traceanalyzer.read.event_schema import DEVICE_CATEGORIES, LAUNCH_CATEGORIES
from traceanalyzer.read.rank_of_file import missing_ranks, world_size

UNSEEN_WORK = frozenset({"accelerator_events", "kernels_not_recorded", "zero_duration"})
"""Warnings of a trace that tell of work on a device that is not among its kernels: host operations are not the work."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's profile.

    Attributes:
        metadata: what the file says about itself.
        events: every complete event, columns of ``read.event_schema.EVENT_SCHEMA``; ``start_ns`` is relative to
            ``metadata.base_ns``. Lazy: a filter or projection reads only what it needs.
        store: where the events lie, when they lie in a store.
        derived: where results may be kept for the next command; None where nothing may be kept.
    """

    metadata: TraceMetadata
    events: pl.LazyFrame
    store: Store | None = None
    derived: Derived | None = None

    @classmethod
    def from_store(cls, store: Store, *, keep: bool = True) -> Trace:
        """Open an ingested trace; nothing is read until a view is asked for.

        Args:
            keep: whether results may be read from files beside its events, and written there.
        """
        base = store.metadata.base_ns
        derived = Derived.beside(store) if keep else None
        return cls(store.metadata, store.scan().with_columns(pl.col("start_ns") - base), store, derived)

    def events_of(self, *categories: str) -> pl.LazyFrame:
        """Return the events of some categories; of a store only the files that hold them are read."""
        if self.store is None:
            return self.events.filter(pl.col("cat").cast(pl.String).is_in(categories))
        return self.store.scan(categories).with_columns(pl.col("start_ns") - self.metadata.base_ns)

    def _repr_html_(self) -> str:
        """Return what Jupyter shows; reads nothing but metadata."""
        known = {
            "rank": self.rank,
            "of": self.metadata.world_size,
            "GPUs": len(self.metadata.device_properties) or None,
            "events": f"{self.metadata.source.events:,}",
            "warnings": len(self.metadata.warnings) or None,
        }
        facts = {name: str(value) for name, value in known.items() if value is not None}
        return facts_html(f"Trace {self.metadata.source.path}", facts)

    @property
    def rank(self) -> int | None:
        """The rank in its job, or None when the trace does not tell."""
        return self.metadata.rank

    @property
    def synthetic(self) -> bool:
        """Whether the file says that it was generated, not recorded."""
        return self.metadata.properties.get("synthetic") is True

    @property
    def cpu_only(self) -> bool:
        """Whether nothing ran on a GPU or another accelerator, so that CPU ops stand in for kernels."""
        unseen = any(warning.code in UNSEEN_WORK for warning in self.metadata.warnings)
        return self._gpu_events.is_empty() and not unseen

    @property
    def names_doubtful(self) -> bool:
        """Whether some kernels may carry another one's name: totals are right, but nothing can be advised by name."""
        return any(warning.code == "doubtful_names" for warning in self.metadata.warnings)

    @cached_property
    def device_events(self) -> pl.DataFrame:
        """Kernels, copies and memsets in order of start; in a CPU-only trace its compute ops.

        Columns of ``EVENT_SCHEMA`` and ``is_kernel`` (false for copies and memsets). ``device`` is None in a
        CPU-only trace.
        """
        return self._compute_ops if self.cpu_only else self._gpu_events

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Host calls that may have started GPU work: those of a runtime or driver category with a correlation."""
        return (
            self.events_of(*LAUNCH_CATEGORIES)
            .filter(pl.col("correlation").is_not_null())
            .select(
                "index", "name", "pid", "tid", "start_ns", "dur_ns", "correlation", "external_id", "launched_kernel"
            )
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def annotations(self) -> pl.DataFrame:
        """Ranges that user code marked (category user_annotation), in order of start."""
        return (
            self.events_of("user_annotation")
            .select("index", "name", "pid", "tid", "start_ns", "dur_ns", "external_id")
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def _gpu_events(self) -> pl.DataFrame:
        return (
            self.events_of(*DEVICE_CATEGORIES)
            .filter(pl.col("dur_ns") > 0, pl.col("name").is_not_null())
            .with_columns(is_kernel=pl.col("cat").cast(pl.String) == "kernel")
            .sort("start_ns", "index")
            .collect()
        )

    @cached_property
    def _compute_ops(self) -> pl.DataFrame:
        return compute_ops(self.events_of("cpu_op").collect()).with_columns(
            is_kernel=pl.lit(True), device=pl.lit(None, dtype=pl.Int32)
        )


@dataclass(frozen=True, eq=False)
class TraceSet:
    """The traces found at the paths a user gave.

    Attributes:
        traces: one per rank, in order of rank; those of unknown rank last, in the order given.
        sources: every file looked at, those without a trace included.
        warnings: of the input as a whole (missing ranks, files that were skipped); each trace has its own in
            ``metadata.warnings``.
        effort: what reading them took; None when a cluster read them.
    """

    traces: tuple[Trace, ...]
    sources: tuple[TraceSource, ...]
    warnings: tuple[TraceWarning, ...]
    effort: Effort | None = None

    @classmethod
    def from_result(cls, result: IngestResult, *, keep: bool = True) -> TraceSet:
        """Open what ingest yielded; for ``keep`` see ``Trace.from_store``."""
        traces = [Trace.from_store(store, keep=keep) for store in result.stores]
        by_rank = sorted(traces, key=lambda trace: (trace.rank is None, trace.rank or 0))
        return cls(tuple(by_rank), result.sources, result.warnings, result.effort)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces)

    def __len__(self) -> int:
        return len(self.traces)

    @property
    def world_size(self) -> int:
        """Ranks of the job: what the traces say, at least the ranks found."""
        stated = world_size([trace.metadata.world_size for trace in self.traces])
        return max([stated or 1, len({trace.rank for trace in self.traces}), *(rank + 1 for rank in self.ranks)])

    @property
    def ranks(self) -> list[int]:
        """Known ranks, ascending."""
        return sorted({trace.rank for trace in self.traces if trace.rank is not None})

    @property
    def missing_ranks(self) -> list[int]:
        """Ranks of the job that no trace is known to come from; empty when no trace tells its rank."""
        return missing_ranks([trace.rank for trace in self.traces], self.world_size)


def open_traces(
    paths: str | Path | Sequence[str | Path],
    *,
    output: Path | None = None,
    cache: bool = True,
    progress: Callable[[int, int | None], None] | None = None,
) -> TraceSet:
    """Open every trace found at the paths (files, directories, archives, stores, URLs), one per rank.

    Args:
        output: a directory that keeps the ingested stores; None for the cache only.
        cache: whether the cache, and results kept in stores, may be read and written.
        progress: called with bytes read so far and bytes in all (None when unknown).

    Raises:
        TraceError: no path holds a usable trace.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    _refuse_after_fork(given)
    result = ingest([str(path) for path in given], output=output, cache=cache, progress=progress)
    return TraceSet.from_result(result, keep=cache)


_opened_by: int | None = None
"""The process that has opened traces, and with it started the threads of Polars."""


def _refuse_after_fork(paths: Sequence[str | Path]) -> None:
    """Stop in a child that was forked after traces were opened: the threads of Polars are not forked, and it would wait
    for them for ever.

    Raises:
        TraceError: this is such a child.
    """
    global _opened_by  # noqa: PLW0603 - a fork copies what a module holds, which is what tells
    if _opened_by not in (None, os.getpid()):
        why = "this process was forked from one that has opened traces, which Polars cannot do: start it by spawn"
        raise TraceError(str(paths[0]) if paths else "input", why)
    _opened_by = os.getpid()


def open_trace(path: str | Path) -> Trace:
    """Open a path that holds exactly one rank's trace.

    The file is ingested on first use and read from the cache after that.

    Raises:
        TraceError: it cannot be used, or holds several traces (use ``open_traces``).
    """
    traces = open_traces(path)
    if len(traces) != 1:
        raise TraceError(str(path), f"holds {len(traces)} traces; open_traces() opens them all")
    return traces.traces[0]
