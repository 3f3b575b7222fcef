"""When the GPU does nothing, whether the host is to blame, and what the host does meanwhile.

A gap is a stretch between the first and last device event of a device in which none runs. The event that ends it
tells the cause: if its launch was issued during the gap, the GPU waited for the host; if before, the event was queued
on the GPU (for a dependency, a copy, the launch itself).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import polars as pl

from traceanalyzer.commands.idle.host import host_time
from traceanalyzer.commands.idle.result import Cause, IdleDevice, IdleGap, IdleHost, Place
from traceanalyzer.declare import frame_schema
from traceanalyzer.intervals import union_ns
from traceanalyzer.notebook import NotebookView
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace
from traceanalyzer.wording import plural

PLACES: tuple[str, ...] = get_args(Place)
CAUSES: tuple[str, ...] = get_args(Cause)


@dataclass(frozen=True, eq=False)
class Idle(NotebookView):
    """The gaps of a trace.

    Attributes:
        gaps: one row per gap, longest first, as ``IdleGap`` declares it.
        host: what the launching threads did during gaps caused by the host, as ``IdleHost`` declares it; only the
            innermost of nested host events counts, so that rows add up.
        totals: one row per device, as ``IdleDevice`` declares it.
        warnings: why the gaps may not be idle time.
    """

    gaps: pl.DataFrame
    host: pl.DataFrame
    totals: pl.DataFrame
    warnings: tuple[TraceWarning, ...]

    @property
    def by_cause(self) -> pl.DataFrame:
        """One row for each place and cause, in the order of PLACES and CAUSES: gaps, total_ns."""
        return (
            self.gaps.group_by("place", "cause")
            .agg(gaps=pl.len(), total_ns=pl.col("dur_ns").sum())
            .sort(_rank_in("place", PLACES), _rank_in("cause", CAUSES))
        )

    @property
    def by_kernel(self) -> pl.DataFrame:
        """One row for each event name that ends gaps (``after``), place and cause, largest total first.

        Further columns: gaps, longest_ns and total_ns.
        """
        return (
            self.gaps.group_by("after", "place", "cause", maintain_order=True)
            .agg(gaps=pl.len(), longest_ns=pl.col("dur_ns").max(), total_ns=pl.col("dur_ns").sum())
            .sort("total_ns", descending=True, maintain_order=True)
        )


def _rank_in(column: str, order: tuple[str, ...]) -> pl.Expr:
    return pl.col(column).replace_strict(list(order), range(len(order)), return_dtype=pl.Int8)


def idle(trace: Trace) -> Idle:
    """Find the gaps on every device of a trace.

    After a graph launch without recorded kernels the device's time is unknown: ``idle_ns`` is None then, and gaps
    are listed up to the first such launch.
    """
    cut = segment(trace)
    if trace.cpu_only or trace.device_events.is_empty():
        warning = TraceWarning("idle_unknown", "no GPU work was recorded, so idle time is unknown")
        gaps, host, totals = (pl.DataFrame(schema=frame_schema(part)) for part in (IdleGap, IdleHost, IdleDevice))
        return Idle(gaps, host, totals, (warning,))
    unrecorded = unrecorded_launches(trace)
    gaps = _gaps(cut.events)
    warnings: list[TraceWarning] = []
    if unrecorded.height:
        first = unrecorded["start_ns"].min()
        gaps = gaps.filter(pl.col("start_ns") + pl.col("dur_ns") < first)
        warnings.append(
            TraceWarning(
                "kernels_not_recorded",
                f"no kernels in the trace for {plural(unrecorded.height, 'graph launch')}: the GPU's time after the "
                "first is unknown, not idle (graph kernels are recorded only when the profiler traces graph nodes)",
                count=unrecorded.height,
            )
        )
    totals = _totals(cut.events, cut.steps)
    if unrecorded.height:
        totals = totals.with_columns(idle_ns=pl.lit(None, dtype=pl.Int64))
    return Idle(gaps.sort("dur_ns", descending=True), host_time(trace, gaps), totals, tuple(warnings))


def unrecorded_launches(trace: Trace) -> pl.DataFrame:
    """Graph launches without a device event in the trace; not the last one, whose events a recording may cut off."""
    correlations = trace.device_events["correlation"].drop_nulls().unique()
    graphs = trace.launches.filter(pl.col("name").cast(pl.String).str.contains("(?i)GraphLaunch"))
    return graphs.filter(~pl.col("correlation").is_in(correlations.implode()), pl.int_range(pl.len()) < pl.len() - 1)


def _gaps(events: pl.DataFrame) -> pl.DataFrame:
    # Events overlap where streams do: a gap starts when the last of all earlier events ends.
    end = pl.col("start_ns") + pl.col("dur_ns")
    reached = end.cum_max().shift(1).over("device")
    step_before = pl.col("step").shift(1).over("device")
    gap_start = pl.col("gap_start")
    # What passed before the launch is the host's; a launch before the gap leaves it no part.
    host = (pl.min_horizontal("launch_ns", "start_ns") - gap_start).clip(lower_bound=0)
    return (
        events.select("device", "start_ns", "dur_ns", "index", "name", "step", "block", "launch_ns", "correlation")
        .sort("device", "start_ns", "index")
        .with_columns(gap_start=reached, step_before=step_before, before=pl.col("name").shift(1).over("device"))
        .filter(pl.col("start_ns") > gap_start)
        .with_columns(
            dur_ns=pl.col("start_ns") - gap_start,
            place=pl.when(pl.col("step").is_null() | pl.col("step_before").is_null())
            .then(pl.lit("outside steps"))
            .when(pl.col("step") == pl.col("step_before"))
            .then(pl.lit("inside step"))
            .otherwise(pl.lit("between steps")),
            host_ns=pl.when(pl.col("launch_ns").is_not_null()).then(host),
        )
        .with_columns(
            cause=pl.when(pl.col("host_ns").is_null())
            .then(pl.lit("unknown"))
            .when(pl.col("host_ns") > 0)
            .then(pl.lit("host"))
            .otherwise(pl.lit("device")),
            start_ns=gap_start,
            before=pl.col("before").cast(pl.String),
            after=pl.col("name").cast(pl.String),
        )
        .select(list(frame_schema(IdleGap)))
    )


def _totals(events: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    end = pl.col("start_ns") + pl.col("dur_ns")
    complete = steps.filter("complete").group_by("device").agg(steps=pl.len().cast(pl.Int64))
    return (
        events.select("device", "start_ns", "dur_ns")
        .sort("device", "start_ns")
        .group_by("device", maintain_order=True)
        .agg(span_ns=end.max() - pl.col("start_ns").min(), busy_ns=union_ns())
        .with_columns(idle_ns=pl.col("span_ns") - pl.col("busy_ns"))
        .join(complete, on="device", how="left")
        .with_columns(pl.col("steps").fill_null(0))
    )
