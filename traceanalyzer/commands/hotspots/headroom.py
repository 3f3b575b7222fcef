"""The ranking by headroom instead of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.roofline.bounds import Bound


def by_headroom(ranking: Hotspots, bounds: Mapping[str, Bound]) -> Hotspots:
    """Return the ranking with most headroom first; groups where it is unknown after them, by time."""
    headroom = {name: bound.headroom_ns for name, bound in bounds.items() if bound.headroom_ns is not None}
    rows = ranking.rows.with_columns(
        headroom_ns=pl.col("name").replace_strict(headroom, default=None, return_dtype=pl.Float64)
    ).sort(["headroom_ns", "total_ns", "name"], descending=[True, True, False], nulls_last=True)
    return replace(ranking, rows=rows.drop("headroom_ns"))
