"""Kernels, roles or families by time: one bar each, the name above its bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from traceanalyzer.analysis.hotspots import Hotspots
from traceanalyzer.names import short_name
from traceanalyzer.report.plots import style
from traceanalyzer.report.text import duration, percent, plural

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
    count = max(len(bars), 1)
    above = by == "kernel"
    figure = style.new_figure(
        0.8 + (0.5 if above else 0.34) * count + (0.35 if width > 7 else 0.6 if by != "family" else 0.0), width
    )
    axes = figure.add_subplot()
    axes.set_title(title)
    for at, (name, value, role) in enumerate(bars):
        colour = style.GRID if role is None else _colour(role, by)
        axes.barh(at, value, height=0.36 if above else 0.62, color=colour)
        if above:
            # The name above its bar takes no room beside the axis.
            place = (0, at - 0.22)
            axes.annotate(name, place, (0, 1), textcoords="offset points", va="bottom", fontsize=style.SMALL)
        axes.annotate(
            f"{duration(value)} · {percent(value / total)}",
            (value, at),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.SMALL,
            color=style.MUTED,
        )
    axes.set_ylim(count - 0.5, -0.85 if above else -0.6)
    axes.set_xlim(0, max((value for _, value, _ in bars), default=1.0) * 1.33)
    axes.set_yticks([] if above else range(len(bars)), None if above else [name for name, _, _ in bars])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(not above)
    axes.tick_params(length=0)
    for text in axes.texts:
        style.fit(text, 0.97 * figure.bbox.width)
    if by != "family":
        _legend(figure, [style.group_of(role) for _, _, role in bars if role is not None])
    return figure


def _colour(role: str, by: str) -> str:
    return style.BLUE if by == "family" else style.GROUP_COLOURS[style.group_of(role)]


def _legend(figure: Figure, groups: list[str]) -> None:
    from matplotlib.patches import Patch

    used = [group for group in style.ROLE_GROUPS if group in groups]
    handles = [Patch(color=style.GROUP_COLOURS[group], label=group) for group in used]
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=5 if figure.get_figwidth() > 7 else 2,
        handlelength=1.0,
        columnspacing=1.2,
        handletextpad=0.5,
    )
