"""Idle time: one bar per kernel that ends gaps, coloured by their cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.commands.idle.compute import CAUSES, Idle
from traceanalyzer.names import short_name
from traceanalyzer.show.plots import style
from traceanalyzer.show.plots.bars import Bar, LegendEntry, time_bars
from traceanalyzer.wording import duration, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 12
NAME_LENGTH = 62
LOOKS = {"host": (style.VERMILION, ""), "device": (style.BLUE, ""), "unknown": (style.GREY, "///")}
MEANINGS = {"host": "launched late by the host", "device": "queued on the GPU", "unknown": "launch not recorded"}


def gaps_by_kernel(waits: Idle, limit: int = MOST_BARS) -> Figure:
    """Draw the time in gaps by the kernel that ends them, largest first; all further ones are one bar.

    Where no GPU work was recorded there are no bars, and the reason instead.
    """
    rows = waits.by_kernel
    total = int(rows["total_ns"].sum())
    bars = [
        Bar(f"{short_name(row['after'], NAME_LENGTH)}  ({row['place']})", row["total_ns"], *LOOKS[row["cause"]])
        for row in rows.head(limit).iter_rows(named=True)
    ]
    rest = rows.slice(limit)
    if rest.height:
        bars.append(Bar(plural(rest.height, "more row"), float(rest["total_ns"].sum()), style.GRID))
    known = not waits.totals.is_empty()
    title = f"Gaps on the GPU: {duration(total) if known else 'unknown'}, by the kernel that ends them"
    nothing = "no gaps" if known else "; ".join(warning.message for warning in waits.warnings)
    used = [cause for cause in CAUSES if cause in rows["cause"]]
    entries = [LegendEntry(MEANINGS[cause], *LOOKS[cause]) for cause in used]
    with style.styled():
        return time_bars(bars, total or 1, title, names_above=True, entries=entries, nothing=nothing)
