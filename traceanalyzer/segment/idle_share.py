"""How much of the steps the GPU does nothing: said before any kernel where it is most of the time."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.findings import Finding
from traceanalyzer.intervals import union_ns
from traceanalyzer.segment.segmentation_result import Segmentation
from traceanalyzer.wording import duration, percent, plural, us

MOSTLY = 0.5
"""Share of the time from which on the GPU idles for most of it: then no kernel is what limits the step."""


@dataclass(frozen=True)
class IdleShare:
    """Idle time of the GPUs in the steps looked at, pauses between them included. Times in ns, sums over all steps.

    Attributes:
        idle_ns: time in which neither a kernel nor a copy ran.
        span_ns: all of the time.
        steps: number of steps; 0 where there are none and the whole recording is meant.
    """

    idle_ns: float
    span_ns: float
    steps: int

    @property
    def share(self) -> float:
        """Idle time over all time."""
        return self.idle_ns / self.span_ns if self.span_ns else 0.0

    @property
    def mostly(self) -> bool:
        """Whether the GPU idles most of the time."""
        return self.share >= MOSTLY

    @property
    def sentence(self) -> str:
        """What to know before any kernel."""
        of = "the recording" if not self.steps else "the step" if self.steps == 1 else plural(self.steps, "step")
        return (
            f"The GPU idles {percent(self.share)} of {of} ({duration(self.idle_ns)} of {duration(self.span_ns)}): "
            f"faster kernels save at most {percent(1 - self.share)}. `traceanalyzer idle` shows what it waits for."
        )

    def finding(self) -> Finding:
        """Return the sentence as a finding; it is worth the idle time per step."""
        return Finding("idle", self.sentence, us(self.idle_ns / max(self.steps, 1)))


def idle_share(cut: Segmentation, *, phase: str | None = None, step: int | None = None) -> IdleShare | None:
    """Return how much of the complete steps of a phase (of one step) is idle; None for CPU-only traces.

    Args:
        cut: the trace.
        phase: only steps of this phase; None for all but dummies.
        step: only the step of this index.
    """
    wanted = pl.col("phase") != "dummy" if phase is None else pl.col("phase") == phase
    looked_at = cut.steps.filter("complete", wanted) if step is None else cut.steps.filter(pl.col("step") == step)
    events = cut.events.filter(pl.col("device").is_not_null()).select("device", "step", "start_ns", "dur_ns")
    looked_at = looked_at.filter(pl.col("device").is_not_null())
    if events.is_empty() or (looked_at.is_empty() and not cut.steps.is_empty()):
        return None
    if looked_at.is_empty():
        end = pl.col("start_ns") + pl.col("dur_ns")
        totals = (
            events.sort("device", "start_ns")
            .group_by("device")
            .agg(busy=union_ns(), span=end.max() - pl.col("start_ns").min())
        )
        return IdleShare(float((totals["span"] - totals["busy"]).sum()), float(totals["span"].sum()), 0)
    keys = ["device", "step"]
    busy = (
        events.join(looked_at.select(*keys, step_start="start_ns"), on=keys)
        # What ran long before the step's start is a side stream's and no part of its span.
        .filter(pl.col("start_ns") >= pl.col("step_start"))
        .sort("device", "step", "start_ns")
        .group_by(keys)
        .agg(busy=union_ns())
    )
    pauses = _pauses(looked_at)
    span = int(looked_at["span_ns"].sum()) + pauses
    return IdleShare(float(span - int(busy["busy"].sum())), float(span), looked_at.height)


def _pauses(steps: pl.DataFrame) -> float:
    """Usual pause between two steps in a row times their number: a single long one is the profiler's, not a habit."""
    rows = steps.sort("device", "step")
    follows = (pl.col("step") == pl.col("step").shift(1) + 1) & (pl.col("device") == pl.col("device").shift(1))
    pauses = rows.filter(follows)["idle_before_ns"].drop_nulls()
    return float(pauses.median() or 0) * len(pauses)  # type: ignore[arg-type]
