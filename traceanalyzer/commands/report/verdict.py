"""The sentences at the top: what a step costs, what to optimise, what changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceanalyzer.commands.diff.compute import change
from traceanalyzer.commands.report.gather import Sides, TraceView
from traceanalyzer.commands.report.page_parts import Fact
from traceanalyzer.names import short_name
from traceanalyzer.wording import MINUS, duration, percent, plural, signed

NAME_WIDTH = 60
IDLE_SHARE = 0.2
"""Share of idle time from which the verdict names it before any kernel; chosen, not fitted."""


def verdict(view: TraceView) -> list[str]:
    """Sentences on one trace, the first one on the step's time, the last one on what to optimise."""
    told = [_step_sentence(view)]
    share = idle_share(view)
    if share is not None and share >= IDLE_SHARE:
        told.append(
            f"The GPU is idle for {percent(share)} of the recording: look at what it waits for before any kernel."
        )
    if view.findings:
        told.append(view.findings[-1].message)
    return told


def _step_sentence(view: TraceView) -> str:
    if view.kernels.total_ns == 0:
        return "The trace holds no kernel time."
    step = view.step_name
    if step is None:
        return f"No complete step was found; the trace holds {duration(view.kernels.total_ns)} of kernel time."
    top = next(iter(_roles_by_step(view)), None)
    start = f"A {step}{_batch(view)} takes {duration(median_span(view))}"
    if top is None:
        return f"{start}."
    share = percent(top["step_share"])
    if top["name"] in (None, "other"):
        return f"{start}; {share} of its kernel time is in kernels of unknown role."
    return f"{start}; {top['name']} takes {share} of its kernel time."


def _batch(view: TraceView) -> str:
    sizes = view.steps["requests"].drop_nulls().unique().sort().to_list()
    if not sizes:
        return ""
    return f" of batch {sizes[0]}" if len(sizes) == 1 else f" of batch {sizes[0]} to {sizes[-1]}"


def median_span(view: TraceView) -> float | None:
    """Median time from the first to the last device event of a step, ns."""
    span = view.steps["span_ns"].median()
    return float(span) if isinstance(span, int | float) else None


def _roles_by_step(view: TraceView) -> list[dict[str, Any]]:
    per_step = pl.col("per_step_ns")
    rows = view.roles.rows.filter(per_step > 0).sort(per_step, descending=True)
    return rows.with_columns(step_share=per_step / per_step.sum()).to_dicts()


def idle_share(view: TraceView) -> float | None:
    """Idle time over the recording, all devices together; None where it is unknown."""
    totals = view.idle.totals
    if totals.is_empty() or totals["idle_ns"].null_count():
        return None
    span = int(totals["span_ns"].sum())
    return int(totals["idle_ns"].sum()) / span if span else None


def key_figures(view: TraceView) -> tuple[Fact, ...]:
    """Key figures of one trace."""
    facts = []
    step = view.step_name
    if step is not None:
        count = plural(view.steps.height, "complete " + step)
        facts.append(Fact("step time", duration(median_span(view)), f"median of {count}"))
        mean = float(view.roles.rows["per_step_ns"].sum())
        facts.append(Fact("kernel time per step", duration(mean), "mean, measured"))
    else:
        facts.append(Fact("kernel time", duration(view.kernels.total_ns), "whole trace, measured"))
    held = view.roofline
    if held is not None and held.floor_ns is not None:
        explained = f"{percent(held.explained_share)} of the time explained"
        facts.append(Fact("floor of that work", duration(held.floor_ns), f"roofline; {explained}"))
    counts = view.steps["blocks"].drop_nulls().unique().sort().to_list()
    if counts and counts != [0]:
        shown = " or ".join(str(count) for count in counts[:3])
        lowest = view.steps["confidence"].min()
        sure = f"confidence {lowest:.2f}" if isinstance(lowest, float) else ""
        facts.append(Fact("transformer blocks", shown, sure))
    share = idle_share(view)
    if view.trace.cpu_only:
        facts.append(Fact("GPU idle", "unknown", "the trace has CPU ops only"))
    else:
        facts.append(Fact("GPU idle", percent(share) if share is not None else "unknown", "of the recording"))
    return tuple(facts)


def diff_verdict(sides: Sides) -> list[str]:
    """From a to b, because kernel k in role r of n blocks changed; undoing it saves at most z."""
    comparison = sides.diff
    delta = comparison.after_step_ns - comparison.before_step_ns
    share = delta / comparison.before_step_ns if comparison.before_step_ns else None
    phases = comparison.matched["phase"].unique().to_list()
    step = f"{phases[0]} step" if len(phases) == 1 and phases[0] != "unknown" else "step"
    change_text = "" if share is None else f" ({'+' if delta > 0 else MINUS if delta < 0 else ''}{percent(abs(share))})"
    spans = f"{duration(comparison.before_step_ns)} to {duration(comparison.after_step_ns)}"
    told = [f"The device time of a {step} went from {spans}{change_text}{_because(comparison.rows, delta)}."]
    slower = comparison.rows.filter(pl.col("delta_ns") > 0)
    back = float(slower["delta_ns"].sum())
    if back >= 1 and comparison.after_step_ns:
        told.append(
            f"What got slower takes {duration(back)} more per step than before: undoing it saves at "
            f"most {percent(back / comparison.after_step_ns)} of the step."
        )
    return told


def _because(rows: pl.DataFrame, delta: float) -> str:
    """Name the row with most of the change in its direction."""
    if abs(delta) < 1 or rows.is_empty():
        return ""
    sign = 1 if delta > 0 else -1
    row = rows.sort(pl.col("delta_ns") * sign, descending=True).row(0, named=True)
    if row["delta_ns"] * sign <= 0:
        return ""
    name = short_name(row["name_after"] or row["name_before"] or "unknown", NAME_WIDTH)
    kind = f"{row['block_kind']} " if row["block_kind"] else ""
    where = f"{row['blocks']} {kind}blocks" if row["section"] == "block" else f"the {row['section'] or 'step'}"
    how = change(row["name_before"], row["name_after"])
    verb = {None: "takes longer" if delta > 0 else "got faster", "added": "was added", "removed": "was removed"}.get(
        how, f"changed ({how})"
    )
    most = percent(row["delta_ns"] / delta) if abs(row["delta_ns"]) <= abs(delta) else "more than all"
    return f", {most} of it because {name} in {row['role'] or 'other'} of {where} {verb}"


def diff_figures(sides: Sides) -> tuple[Fact, ...]:
    """Key figures of a comparison."""
    comparison = sides.diff
    delta = comparison.after_step_ns - comparison.before_step_ns
    span = comparison.after_span_ns - comparison.before_span_ns
    steps = comparison.matched
    return (
        Fact(
            "before",
            duration(comparison.before_step_ns),
            f"{plural(int(steps['steps_before'].sum()), 'step')} compared",
        ),
        Fact(
            "after", duration(comparison.after_step_ns), f"{plural(int(steps['steps_after'].sum()), 'step')} compared"
        ),
        Fact("change", signed(delta, MINUS), "device time per step"),
        Fact("first to last event", signed(span, MINUS), "change per step"),
    )
