"""Figures in the sentences of findings."""

from __future__ import annotations

UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))


def duration(ns: float) -> str:
    """Return a time in the unit that fits, with two decimals, such as ``10.74 ms``: as the tables beside it have it."""
    for unit, size in UNITS:
        if abs(ns) >= size:
            return f"{ns / size:,.2f} {unit}"
    return f"{ns:,.0f} ns"
