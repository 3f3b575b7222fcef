"""Lengths of unions of time intervals, as Polars expressions."""

from __future__ import annotations

import polars as pl


def union_ns(start: str = "start_ns", duration: str = "dur_ns") -> pl.Expr:
    """Length in ns of the union of the intervals of a frame or group.

    The rows must be in order of ``start``. Each interval adds what reaches beyond all earlier ones.
    """
    end = pl.col(start) + pl.col(duration)
    reached = pl.max_horizontal(end.cum_max().shift(1), pl.col(start))
    return (end - reached).clip(lower_bound=0).sum()
