"""Kernels, roles or families by time: one bar each, the name above its bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from traceanalyzer.analysis.hotspots import Hotspots
from traceanalyzer.names import short_name
from traceanalyzer.report.plots import style
from traceanalyzer.report.plots.bars import Bar, colour_legend, time_bars
from traceanalyzer.report.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 12
NAME_LENGTH = 62
SHORT_LENGTH = 24


def kernels_by_time(
    found: Hotspots, by: str = "kernel", limit: int = MOST_BARS, title: str | None = None, width: float = style.WIDTH
) -> Figure:
    """Draw the largest groups of a ranking as bars, and the rest as one.

    Bars are the time a step where there are complete steps, else the time in the trace. A bar's colour tells the part
    of the model its role belongs to.

    Args:
        found: the ranking.
        by: what a row of it is: kernel, role or family.
        limit: bars; further rows are summed in one.
        title: what stands above; null for the usual.
        width: of the figure, inches.
    """
    column = "per_step_ns" if found.steps and found.rows["per_step_ns"].sum() else "total_ns"
    rows = found.rows.filter(pl.col(column) > 0).sort(column, "name", descending=[True, False])
    total = float(rows[column].sum()) or 1.0
    bars = [_bar(row, by, column) for row in rows.head(limit).iter_rows(named=True)]
    rest = rows.slice(limit)
    if rest.height:
        bars.append((f"{plural(rest.height, f'more {by}')}", float(rest[column].sum()), None))
    with style.styled():
        return _draw(bars, total, title or _title(found, by, column), by=by, width=width)


def _bar(row: dict[str, Any], by: str, column: str) -> tuple[str, float, str | None]:
    name = row["name"] or "unknown"
    role = row["name"] if by == "role" else row["role"]
    if by != "kernel":
        return style.label(name, SHORT_LENGTH), float(row[column]), role or "other"
    tile = f"  [{row['tile']}]" if row["tile"] else ""
    shown = short_name(name, NAME_LENGTH)
    if tile and row["tile"] not in shown:
        shown = short_name(name, NAME_LENGTH - len(tile)) + tile
    return shown, float(row[column]), role or "other"


def _title(found: Hotspots, by: str, column: str) -> str:
    if column == "total_ns":
        return f"Kernel time in the trace, by {by}"
    return f"Kernel time of a {found.phase + ' ' if found.phase else ''}step, by {by}"


def _draw(bars: list[tuple[str, float, str | None]], total: float, title: str, *, by: str, width: float) -> Figure:
    legend = 0.35 if width > 7 else 0.6 if by != "family" else 0.0
    drawn = [Bar(name, value, style.GRID if role is None else _colour(role, by)) for name, value, role in bars]
    figure = time_bars(drawn, total, title, names_above=by == "kernel", width=width, legend=legend)
    if by != "family":
        groups = {style.group_of(role) for _, _, role in bars if role is not None}
        known = [(group, colour) for group, colour in style.GROUP_COLOURS.items() if group in groups]
        colour_legend(figure, [Bar(group, 0, colour) for group, colour in known])
    return figure


def _colour(role: str, by: str) -> str:
    return style.BLUE if by == "family" else style.GROUP_COLOURS[style.group_of(role)]
