"""What was found in a trace, as tracks of slices for a timeline viewer: steps, blocks, roles, gaps, findings."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from traceanalyzer.commands.hotspots.advice import advice
from traceanalyzer.commands.idle.compute import idle
from traceanalyzer.names import short_name
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment.outliers import find_outliers
from traceanalyzer.show.step_groups import step_groups
from traceanalyzer.trace import Trace

MOST_GAPS = 500
"""Gaps shown on a device, the longest ones."""

KINDS = ("steps", "blocks", "roles", "idle gaps", "findings")


@dataclass(frozen=True)
class Slice:
    """A stretch of a track, ns relative to the trace's first event; without length it is a mark.

    Attributes:
        name: what is written on it.
        start_ns, end_ns: where it lies.
        facts: shown when it is selected.
    """

    name: str
    start_ns: int
    end_ns: int
    facts: dict[str, Any]


@dataclass(frozen=True)
class Track:
    """Slices in order of start that do not overlap.

    Attributes:
        device: the GPU; None in a CPU-only trace.
        kind: one of KINDS.
        lane: 0, or a higher number for what overlaps the slices of the lanes before.
        slices: the content.
    """

    device: int | None
    kind: str
    lane: int
    slices: tuple[Slice, ...]


def tracks_of(trace: Trace) -> list[Track]:
    """Return the tracks of every device.

    A block lies within its step's slice and a role within its block's; roles outside of blocks lie within the step.
    """
    cut = segment(trace)
    tracks: list[Track] = []
    gaps = idle(trace).gaps
    for device in cut.steps["device"].unique(maintain_order=True).to_list():
        own = _of_device(cut, device)
        steps = _step_bounds(own)
        slices = {
            "steps": _steps(steps),
            "blocks": _blocks(own),
            "roles": _roles(own, steps),
            "idle gaps": _gaps(gaps.filter(pl.col("device").eq_missing(pl.lit(device, dtype=pl.Int32)))),
            "findings": [*_outliers(own), *_advice(trace, steps)],
        }
        for kind in KINDS:
            tracks += [Track(device, kind, lane, tuple(part)) for lane, part in enumerate(_lanes(slices[kind]))]
    return tracks


def _of_device(cut: Segmentation, device: int | None) -> Segmentation:
    same = pl.col("device").eq_missing(pl.lit(device, dtype=pl.Int32))
    return Segmentation(
        cut.steps.filter(same), cut.blocks.filter(same), cut.events.filter(same), cut.warnings, cut.workload
    )


def _step_bounds(cut: Segmentation) -> pl.DataFrame:
    """Steps from their first to their last event, stray early events left out but blocks always within."""
    blocks = cut.blocks.group_by("step").agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max())
    return cut.steps.join(blocks, on="step", how="left", maintain_order="left").with_columns(
        start_ns=pl.min_horizontal("start_ns", "first"), end_ns=pl.max_horizontal("end_ns", "last")
    )


def _steps(steps: pl.DataFrame) -> list[Slice]:
    return [
        Slice(
            f"{'' if row['phase'] == 'unknown' else row['phase'] + ' '}step {row['step']}"
            + ("" if row["complete"] else " (cut off)"),
            row["start_ns"],
            row["end_ns"],
            {
                **{key: row[key] for key in ("label", "requests", "tokens", "kv_tokens", "kernels", "blocks")},
                "kernel_sum_us": row["kernel_sum_ns"] / 1000,
                "confidence": row["confidence"],
            },
        )
        for row in steps.filter(pl.col("end_ns") > pl.col("start_ns")).iter_rows(named=True)
    ]


def _blocks(cut: Segmentation) -> list[Slice]:
    return [
        Slice(
            f"block {row['block']} {row['variant']}" + (f" {row['kind']}" if row["kind"] else ""),
            row["start_ns"],
            row["end_ns"],
            {"step": row["step"], "kernels": row["kernels"], "kernel_sum_us": row["kernel_sum_ns"] / 1000},
        )
        for row in cut.blocks.iter_rows(named=True)
    ]


def _roles(cut: Segmentation, steps: pl.DataFrame) -> list[Slice]:
    """A slice per run of events of one role; runs end with their block, section and step."""
    place = ["step", "section", "block"]
    within = (pl.col("start_ns") >= pl.col("step_start")) & (pl.col("end_ns") <= pl.col("step_end"))
    bounds = steps.select("step", step_start="start_ns", step_end="end_ns")
    runs = (
        cut.events.filter(pl.col("step").is_not_null())
        .with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"), role=pl.col("role").fill_null("other"))
        .join(bounds, on="step")
        .filter(within)
        .sort("step", "start_ns", "index")
        .with_columns(run=pl.struct(*place, "role").rle_id())
        .group_by("run", maintain_order=True)
        .agg(
            pl.col(*place, "role").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.len().alias("events"),
            pl.col("dur_ns").sum(),
        )
    )
    return [
        Slice(
            row["role"],
            row["start_ns"],
            row["end_ns"],
            {
                "step": row["step"],
                "section": row["section"],
                "block": row["block"],
                "events": row["events"],
                "sum_us": row["dur_ns"] / 1000,
            },
        )
        for row in runs.iter_rows(named=True)
    ]


def _gaps(gaps: pl.DataFrame) -> list[Slice]:
    return [
        Slice(
            f"idle, cause: {row['cause']}",
            row["start_ns"],
            row["start_ns"] + row["dur_ns"],
            {"place": row["place"], "before": row["before"], "after": row["after"]},
        )
        for row in gaps.sort("dur_ns", descending=True).head(MOST_GAPS).iter_rows(named=True)
    ]


def _outliers(cut: Segmentation) -> list[Slice]:
    """A slice for each run of a block that is unusual in steps of its depth."""
    slices = []
    outliers = find_outliers(cut)
    for group in step_groups(cut) if outliers else ():
        for outlier in group.own(outliers):
            own = group.blocks.filter(pl.col("block") == outlier.block)
            slower = "slower" if outlier.change > 0 else "faster"
            facts = {"kernel": outlier.kernel, "kernel_change_us": outlier.kernel_ns / 1000, "kind": outlier.kind}
            name = f"block {outlier.block} {abs(outlier.change) * 100:.0f} % {slower} than its kind"
            slices += [Slice(name, start, end, facts) for start, end in own.select("start_ns", "end_ns").iter_rows()]
    return slices


def _advice(trace: Trace, steps: pl.DataFrame) -> list[Slice]:
    """Findings on the whole trace, marked where the first complete step starts."""
    whole = steps.filter("complete")
    if whole.is_empty():
        return []
    at = int(whole["start_ns"][0])
    return [
        Slice(
            finding.code.replace("_", " ") + ": " + short_name(finding.message, 80),
            at,
            at,
            {"message": finding.message, "worth_us": finding.worth_us},
        )
        for finding in advice(trace)
    ]


def _lanes(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Spread slices over as few lanes as keep them from overlapping; each lane in order of start."""
    lanes: list[list[Slice]] = []
    free: list[tuple[int, int]] = []  # end of a lane's last slice, and the lane
    for one in sorted(slices, key=lambda each: (each.start_ns, each.end_ns)):
        if free and free[0][0] <= one.start_ns:
            _, lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(one)
        heapq.heappush(free, (one.end_ns, lane))
    return lanes
