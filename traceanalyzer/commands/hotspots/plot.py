"""Kernels, roles or families by time: one bar each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.names import short_name
from traceanalyzer.show.plots import style
from traceanalyzer.show.plots.bars import Bar, LegendEntry, time_bars
from traceanalyzer.wording import plural, step_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 12
NAME_LENGTH = 62
SHORT_LENGTH = 24
SEVERAL = (style.GREY, "///")
"""How a kernel looks that runs in several roles."""


def kernels_by_time(
    ranking: Hotspots, by: str = "kernel", limit: int = MOST_BARS, title: str | None = None, width: float = style.WIDTH
) -> Figure:
    """Draw the largest groups of a ranking as bars, and the rest as one.

    Bars are the time per step where there are complete steps, else the time in the trace. A bar's colour tells the part
    of the model its role belongs to; a kernel that has several is hatched.

    Args:
        ranking: the ranking.
        by: what a row of it is: kernel, role or family.
        limit: bars; further rows are summed in one.
        title: the title; None for the usual one.
        width: of the figure, inches.
    """
    column = "per_step_ns" if ranking.steps and ranking.rows["per_step_ns"].sum() else "total_ns"
    rows = ranking.rows.filter(pl.col(column) > 0).sort(column, "name", descending=[True, False])
    total = float(rows[column].sum()) or 1.0
    bars = [_bar(row, by, column) for row in rows.head(limit).iter_rows(named=True)]
    entries = [] if by == "family" else _entries(bars)
    rest = rows.slice(limit)
    if rest.height:
        bars.append(Bar(f"{plural(rest.height, f'more {by}')}", float(rest[column].sum()), style.GRID))
    nothing = f"no complete {ranking.phase} step" if ranking.phase else "no kernels"
    title = title or _title(ranking, by, column)
    above = by == "kernel"
    with style.styled():
        return time_bars(bars, total, title, names_above=above, width=width, entries=entries, nothing=nothing)


def _bar(row: dict[str, Any], by: str, column: str) -> Bar:
    name = row["name"] or "unknown"
    value = float(row[column])
    if by == "family":
        return Bar(style.label(name, SHORT_LENGTH), value, style.BLUE)
    if by == "role":
        return Bar(style.label(name, SHORT_LENGTH), value, *style.look_of(row["name"]))
    tile = f"  [{row['tile']}]" if row["tile"] else ""
    shown = short_name(name, NAME_LENGTH)
    if tile and row["tile"] not in shown:
        shown = short_name(name, NAME_LENGTH - len(tile)) + tile
    if row["role"] is None:
        return Bar(shown, value, *SEVERAL)
    return Bar(shown, value, *style.look_of(row["role"]))


def _entries(bars: Sequence[Bar]) -> list[LegendEntry]:
    """What the looks of the bars stand for, in the order of the groups of roles."""
    used = {(bar.colour, bar.hatch) for bar in bars}
    known = [LegendEntry(group, colour, style.GROUP_HATCHES[group]) for group, colour in style.GROUP_COLOURS.items()]
    return [one for one in [*known, LegendEntry("several roles", *SEVERAL)] if (one.colour, one.hatch) in used]


def _title(ranking: Hotspots, by: str, column: str) -> str:
    if column == "total_ns" and not ranking.phase:
        return f"Kernel time in the trace, by {by}"
    return f"Kernel time per {step_of(ranking.phase)}, by {by}"
