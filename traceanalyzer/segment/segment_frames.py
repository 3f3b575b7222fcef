"""The frames of a segmentation, from what was found."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.segmentation_result import BLOCK_SCHEMA, STEP_SCHEMA, Segmentation
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import ByteArray, IntArray
from traceanalyzer.words import ROLES

_STRAY_SHARE = 0.1
"""Kernel time of a step that stray early events may have at most. Chosen, not fitted."""


@dataclass(frozen=True, eq=False)
class StepContent:
    """What a step is made of; steps with the same kernels and blocks share it.

    Attributes:
        roles: positions in ROLES, one per event of the step.
        kinds: kind of each block; None where nothing sets it apart.
        variants: letter of each block.
        period: blocks after which the variants repeat; None where they never do.
    """

    roles: ByteArray
    kinds: tuple[str | None, ...]
    variants: tuple[str, ...]
    period: int | None


@dataclass(frozen=True, eq=False)
class PlacedStep:
    """A step with its blocks; `rows` are its events' rows in the whole frame, `beside` those of side streams."""

    device: int | None
    number: int
    step: StepEvents
    cut: Cut
    rows: IntArray
    content: StepContent
    beside: IntArray


def assemble(events: pl.DataFrame, placements: list[PlacedStep], warnings: tuple[TraceWarning, ...]) -> Segmentation:
    """Build the frames; `events` keeps its rows and order."""
    placed = _place(events, placements)
    return Segmentation(_steps(placed, placements), _blocks(placed, placements), placed, warnings)


def _place(events: pl.DataFrame, placements: list[PlacedStep]) -> pl.DataFrame:
    length = len(events)
    step = np.full(length, -1, dtype=np.int32)
    block = np.full(length, -1, dtype=np.int32)
    section = np.zeros(length, dtype=np.int8)
    role = np.full(length, len(ROLES) - 1, dtype=np.int8)
    kernel = events["is_kernel"].to_numpy()
    for placement in placements:
        rows, cut = placement.rows, placement.cut
        step[rows] = placement.number
        block[rows] = cut.block_of
        inside = cut.block_of >= 0
        first = int(inside.argmax()) if inside.any() else len(rows)
        before = np.arange(len(rows)) < first
        section[rows] = np.where(inside, 2, np.where(before, 1, 3)) if cut.count else 0
        role[rows] = placement.content.roles
        # What runs beside the model is of the step, and of no section, block or role; a copy is one anywhere.
        step[placement.beside] = placement.number
        role[placement.beside[~kernel[placement.beside]]] = ROLES.index("copy")
    names = pl.Series([None, "prologue", "block", "epilogue"], dtype=pl.String)
    return events.drop("launch_thread", "launch_id").with_columns(
        step=pl.Series(step).replace(-1, None),
        section=names.gather(pl.Series(section.astype(np.uint32))),
        block=pl.Series(block).replace(-1, None),
        role=pl.Series(ROLES, dtype=pl.String).gather(pl.Series(role.astype(np.uint32))),
    )


def _sums(placed: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Events, kernels, kernel time, busy time and extent by step or block."""
    kernel = pl.col("is_kernel")
    end = pl.col("start_ns") + pl.col("dur_ns")
    return (
        placed.lazy()
        .filter(pl.all_horizontal(pl.col(key).is_not_null() for key in keys if key != "device"))
        .sort(*keys, "start_ns", "index")
        .with_columns(end_ns=end, kernel_end=pl.when(kernel).then(end))
        .with_columns(before=pl.col("kernel_end").cum_max().over(keys).shift(1).over(keys))
        .with_columns(before=pl.col("before").forward_fill().over(keys))
        .group_by(keys, maintain_order=True)
        .agg(
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            events=pl.len().cast(pl.Int64),
            kernels=kernel.sum().cast(pl.Int64),
            kernel_sum_ns=pl.col("dur_ns").filter(kernel).sum(),
            busy_ns=(pl.col("end_ns") - pl.max_horizontal("start_ns", "before"))
            .clip(lower_bound=0)
            .filter(kernel)
            .sum(),
            first_kernel=pl.col("name").cast(pl.String).filter(kernel).first(),
        )
        .collect()
    )


def _blocks(placed: pl.DataFrame, placements: list[PlacedStep]) -> pl.DataFrame:
    facts = pl.DataFrame(
        [
            (placement.device, placement.number, block, *content)
            for placement in placements
            for block, content in enumerate(zip(placement.content.variants, placement.content.kinds, strict=True))
        ],
        schema={name: BLOCK_SCHEMA[name] for name in ("device", "step", "block", "variant", "kind")},
        orient="row",
    )
    sums = _sums(placed.filter(pl.col("block").is_not_null()), ["device", "step", "block"])
    joined = facts.join(sums, on=["device", "step", "block"], how="left", nulls_equal=True, maintain_order="left")
    return joined.select(pl.col(name).cast(dtype) for name, dtype in BLOCK_SCHEMA.items())


_TOLD = ("label", "source", "phase", "phase_source", "phase_confidence", "complete", "requests", "tokens", "kv_tokens")
"""Columns of STEP_SCHEMA that a step has before its blocks are known."""


def _passes(placement: PlacedStep, dur: IntArray) -> list[dict[str, object]]:
    """The passes of a step with the time of the events in their blocks."""
    cut = placement.cut
    inside = cut.block_of >= 0
    blocks = cut.block_of[inside]
    own = np.zeros(len(blocks), dtype=np.int64) if cut.pass_of is None else cut.pass_of[blocks]
    times = np.bincount(own, weights=dur[placement.rows[inside]], minlength=len(cut.passes))
    return [
        {"kind": one.kind, "blocks": one.blocks, "event_sum_ns": round(time)}
        for one, time in zip(cut.passes, times.tolist(), strict=False)
    ]


def _step_facts(placed: pl.DataFrame, placements: list[PlacedStep]) -> pl.DataFrame:
    """What is known of each step but for the sums over its events, and its true start."""
    start, dur = placed["start_ns"].to_numpy(), placed["dur_ns"].to_numpy()
    told = attrgetter(*_TOLD)
    rows = [
        (
            placement.device,
            placement.number,
            *told(placement.step),
            placement.cut.layers,
            _passes(placement, dur),
            placement.content.period,
            placement.cut.method if placement.cut.count else None,
            placement.cut.confidence if placement.cut.count else None,
            _start(start[placement.rows], dur[placement.rows]),
        )
        for placement in placements
    ]
    names = ("device", "step", *_TOLD, "blocks", "passes", "period_blocks", "method", "confidence")
    schema = {**{name: STEP_SCHEMA[name] for name in names}, "true_start": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _steps(placed: pl.DataFrame, placements: list[PlacedStep]) -> pl.DataFrame:
    facts = _step_facts(placed, placements)
    sums = _sums(placed, ["device", "step"])
    joined = facts.join(sums, on=["device", "step"], how="left", nulls_equal=True, maintain_order="left")
    return (
        joined.with_columns(start_ns=pl.coalesce("true_start", "start_ns"))
        .with_columns(
            span_ns=pl.col("end_ns") - pl.col("start_ns"),
            idle_before_ns=(
                pl.col("start_ns") - pl.col("end_ns").cum_max().over("device").shift(1).over("device")
            ).clip(lower_bound=0),
        )
        .select(pl.col(name).cast(dtype) for name, dtype in STEP_SCHEMA.items())
    )


def _start(start: IntArray, dur: IntArray) -> int | None:
    """Start of the step's work: events far before it (a side stream's) are not part of it.

    Far is a hole longer than everything that follows, with hardly any kernel time before it.
    """
    if len(start) < 2:
        return int(start[0]) if len(start) else None
    reached = np.maximum.accumulate(start + dur)
    holes = start[1:] - reached[:-1]
    rest = reached[-1] - start[1:]
    spent = np.cumsum(dur)[:-1]
    stray = np.flatnonzero((holes > rest) & (spent <= _STRAY_SHARE * dur.sum()))
    return int(start[stray[-1] + 1]) if len(stray) else int(start[0])
