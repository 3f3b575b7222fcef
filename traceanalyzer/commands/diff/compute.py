"""What changed between two traces of the same model, role by role and position by position.

Kernels are paired by where they stand - section, kind of block, role, and order among the kernels of that role - and
not by name, so that a compiler's serial numbers or another tile do not make a kernel "new".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from traceanalyzer.names import normalise, parse
from traceanalyzer.names.kernel_text import tile_text
from traceanalyzer.notebook import NotebookView
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace


@dataclass(frozen=True, eq=False)
class Diff(NotebookView):
    """Two traces compared. A step's time is the sum of its device events (kernels, copies, memsets), in ns.

    Attributes:
        before_step_ns, after_step_ns: mean over the steps compared.
        rows: one row per kernel position, times per step, as ``DiffRow`` declares it; the largest change first. A
            position that exists on one side only has no name and 0 ns on the other. The deltas sum to the step's.
        unattributed_ns: what the rows leave of the step's delta.
        before_span_ns, after_span_ns: mean time from the first to the last device event of a step.
        matched: the steps that were compared, as ``DiffSteps`` declares it.
        warnings: why the comparison may mislead.
    """

    before_step_ns: float
    after_step_ns: float
    rows: pl.DataFrame
    unattributed_ns: float
    before_span_ns: float
    after_span_ns: float
    matched: pl.DataFrame
    warnings: tuple[TraceWarning, ...]


def diff(before: Trace, after: Trace, phase: str | None = None) -> Diff:
    """Compare the complete steps that both traces have: of the same phase and number of requests.

    Where no batch size occurs in both, steps of the same phase are compared and a warning says so. Each combination
    of phase and batch weighs as often as it occurs in ``before``.

    Raises:
        TraceError: no phase occurs in both.
    """
    sides = (before, after)
    steps = [_complete_steps(trace, phase) for trace in sides]
    keys, warnings = _match(steps, after)
    means = [
        _positions(trace, matched, keys, side)
        for trace, matched, side in zip(sides, steps, ("before", "after"), strict=True)
    ]
    rows = _pair(*means)
    totals = [_mean_over_keys(matched, keys, "sum_ns") for matched in steps]
    spans = [_mean_over_keys(matched, keys, "span_ns") for matched in steps]
    return Diff(
        before_step_ns=totals[0],
        after_step_ns=totals[1],
        rows=rows,
        unattributed_ns=round((totals[1] - totals[0]) - float(rows["delta_ns"].sum()), 3),
        before_span_ns=spans[0],
        after_span_ns=spans[1],
        matched=keys.select("phase", "requests", "steps_before", "steps_after"),
        warnings=tuple(warnings),
    )


def _complete_steps(trace: Trace, phase: str | None) -> pl.DataFrame:
    cut = segment(trace)
    sums = cut.events.group_by("device", "step").agg(sum_ns=pl.col("dur_ns").sum())
    wanted = pl.col("phase") != "dummy" if phase is None else pl.col("phase") == phase
    return cut.steps.filter(pl.col("complete"), wanted).join(sums, on=["device", "step"], nulls_equal=True)


def _match(steps: Sequence[pl.DataFrame], after: Trace) -> tuple[pl.DataFrame, list[TraceWarning]]:
    """Return phase, requests, key, steps_before, steps_after, weight; requests is None where only phases match."""
    for columns in (["phase", "requests"], ["phase"]):
        before, later = (side.group_by(columns).agg(steps=pl.len()) for side in steps)
        both = before.join(later, on=columns, nulls_equal=True, suffix="_after").rename({"steps": "steps_before"})
        if both.height:
            break
    else:
        known = [", ".join(side["phase"].unique(maintain_order=True).to_list()) or "none" for side in steps]
        raise TraceError(
            after.metadata.source.path,
            f"there is no complete step of a phase that both traces have (before: {known[0]}, after: {known[1]})",
        )
    warnings = []
    if len(columns) == 1:
        batches = [", ".join(str(r) for r in side["requests"].unique().sort().to_list()) for side in steps]
        both = both.with_columns(requests=pl.lit(None, dtype=pl.Int64))
        warnings.append(
            TraceWarning(
                "batch_differs",
                f"no batch size occurs in both traces (before: {batches[0]}, after: {batches[1]}); steps are compared "
                "by phase only, so part of the change comes from the batch size",
            )
        )
    weight = pl.col("steps_before") / pl.col("steps_before").sum()
    return both.sort("phase", "requests").with_columns(weight=weight, by_batch=pl.lit(len(columns) == 2)), warnings


def _in_key(steps: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Steps that take part, with the weight of one of them in the mean."""
    on = ["phase", "requests"] if keys["by_batch"].item(0) else ["phase"]
    joined = steps.join(keys.select(*on, "weight"), on=on, nulls_equal=True)
    return joined.with_columns(step_weight=pl.col("weight") / pl.len().over(on))


def _mean_over_keys(steps: pl.DataFrame, keys: pl.DataFrame, column: str) -> float:
    return float(_in_key(steps, keys).select((pl.col(column) * pl.col("step_weight")).sum()).item())


_POSITION = ["section", "block_kind", "role", "position"]


def _positions(trace: Trace, steps: pl.DataFrame, keys: pl.DataFrame, side: str) -> pl.DataFrame:
    """Mean time per step of every kernel position: _POSITION, key (normalised name), name, blocks, ns."""
    cut = segment(trace)
    weighted = _in_key(steps, keys).select("device", "step", "step_weight")
    kinds = cut.blocks.select("device", "step", "block", block_kind=pl.col("kind"))
    # A position counts the kernels of one role within a block (outside of blocks: within a section).
    events = (
        cut.events.join(weighted, on=["device", "step"], nulls_equal=True)
        .join(kinds, on=["device", "step", "block"], how="left", nulls_equal=True)
        .sort("device", "step", "start_ns", "index")
        .with_columns(name=pl.col("name").cast(pl.String))
        .with_columns(
            position=pl.int_range(pl.len()).over("device", "step", "block", "section", "role"),
            weighted_ns=pl.col("dur_ns") * pl.col("step_weight"),
        )
    )
    return (
        events.group_by(_POSITION, maintain_order=True)
        .agg(
            name=pl.col("name").mode().sort().first(),
            blocks=pl.col("block").n_unique(),
            ns=pl.col("weighted_ns").sum(),
        )
        .with_columns(key=pl.col("name").map_elements(normalise, return_dtype=pl.String), side=pl.lit(side))
    )


def _pair(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Pair positions within section, kind and role: same normalised name first, then what is left in order."""
    place = ["section", "block_kind", "role"]
    # The n-th kernel of a name on one side is the n-th on the other, so that one inserted kernel shifts no other.
    same_name = [
        side.with_columns(nth=pl.int_range(pl.len()).over(*place, "key")).rename(
            {"name": f"name_{label}", "ns": f"{label}_ns"}
        )
        for side, label in ((before, "before"), (after, "after"))
    ]
    named = same_name[0].join(same_name[1], on=[*place, "key", "nth"], nulls_equal=True, suffix="_after")
    # What is left has another name: a new tile or library. It is paired in order, and what is over is new or gone.
    rest = [
        frame.join(named, on=[*place, "key", "nth"], how="anti", nulls_equal=True)
        .sort("position")
        .with_columns(nth=pl.int_range(pl.len()).over(place))
        for frame in same_name
    ]
    by_order = rest[0].join(rest[1], on=[*place, "nth"], how="full", coalesce=True, nulls_equal=True, suffix="_after")
    columns = [*place, "position", "name_before", "name_after", "blocks", "before_ns", "after_ns"]
    paired = pl.concat(
        [
            frame.with_columns(
                position=pl.coalesce("position", "position_after"), blocks=pl.coalesce("blocks", "blocks_after")
            ).select(columns)
            for frame in (named, by_order)
        ]
    )
    changed = paired.with_columns(pl.col("before_ns", "after_ns").fill_null(0.0)).with_columns(
        delta_ns=pl.col("after_ns") - pl.col("before_ns")
    )
    # Joins keep no order, so that of rows with the same times is stated.
    ties = [*place, "position", "name_before", "name_after"]
    return changed.sort(
        [pl.col("delta_ns").abs(), pl.col("before_ns"), *ties], descending=[True, True, *(False for _ in ties)]
    )


def change(name_before: str | None, name_after: str | None) -> str | None:
    """Say in words how a kernel changed: tile, library or name; None where its normalised name is the same."""
    if name_before is None or name_after is None:
        return "added" if name_before is None else "removed"
    if normalise(name_before) == normalise(name_after):
        return None
    old, new = parse(name_before), parse(name_after)
    parts = []
    if old.library != new.library and old.library and new.library:
        parts.append(f"library {old.library} -> {new.library}")
    if old.tile != new.tile and old.tile and new.tile:
        parts.append(f"tile {tile_text(old)} -> {tile_text(new)}")
    if old.split_k != new.split_k and old.split_k is not None and new.split_k is not None:
        parts.append(f"split-k {old.split_k} -> {new.split_k}")
    return ", ".join(parts) or "another kernel"
