"""Limit, share of roof and headroom of the groups that hotspots ranks."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.names import parse
from traceanalyzer.roofline.roofline_result import Roofline


@dataclass(frozen=True)
class Bound:
    """What limits a group of kernels.

    Attributes:
        bound: the limit that most of its time has; ``unknown`` included.
        roof_share: floor over time of its kernels with a plausible floor; None without any.
        headroom_ns: time per step above floor and launch latency; None where unknown.
    """

    bound: str
    roof_share: float | None
    headroom_ns: float | None


def bounds_by(roofline: Roofline, by: str) -> dict[str, Bound]:
    """Return the bound of each kernel name, role or family (``by``) of the steps looked at."""
    kernels = roofline.kernels.select("name", "role", "bound", "floor_ns", "plausible", "headroom_ns", "dur_ns")
    if by == "family":
        names = kernels["name"].unique().to_list()
        families = {name: parse(name).family for name in names}
        kernels = kernels.with_columns(group=pl.col("name").replace_strict(families, return_dtype=pl.String))
    else:
        kernels = kernels.with_columns(group=pl.col("name" if by == "kernel" else by))
    held = pl.col("floor_ns").is_not_null() & pl.col("plausible")
    known = pl.col("headroom_ns").is_not_null()
    summed = kernels.group_by("group", "bound").agg(
        time=pl.col("dur_ns").sum(),
        floor=pl.col("floor_ns").filter(held).sum(),
        held=pl.col("dur_ns").filter(held).sum(),
        headroom=pl.when(known.any()).then(pl.col("headroom_ns").sum() / roofline.steps),
    )
    groups = (
        summed.sort("time", descending=True)
        .group_by("group", maintain_order=True)
        .agg(
            pl.col("bound").first(),
            roof_share=pl.when(pl.col("held").sum() > 0).then(pl.col("floor").sum() / pl.col("held").sum()),
            headroom=pl.when(pl.col("headroom").is_not_null().any()).then(pl.col("headroom").sum()),
        )
        .filter(pl.col("group").is_not_null())
    )
    return {
        row["group"]: Bound(row["bound"], row["roof_share"], row["headroom"]) for row in groups.iter_rows(named=True)
    }
