"""What changed between two traces: one bar per role, faster to the left, slower to the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from traceanalyzer.commands.diff.compute import Diff
from traceanalyzer.show.plots import style
from traceanalyzer.wording import MINUS, duration, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROLES = 12


def change_by_role(comparison: Diff) -> Figure:
    """Draw the change of device time per step, by role, largest first; all further roles are one bar."""
    roles = (
        comparison.rows.group_by(pl.col("role").fill_null("other"))
        .agg(pl.col("delta_ns").sum())
        .filter(pl.col("delta_ns").abs() >= 0.5)
        .sort([pl.col("delta_ns").abs(), pl.col("role")], descending=[True, False])
    )
    bars: list[tuple[str, float]] = [(role, delta) for role, delta in roles.head(MOST_ROLES).iter_rows()]
    rest = float(roles.slice(MOST_ROLES)["delta_ns"].sum()) + comparison.unattributed_ns
    if roles.height > MOST_ROLES or abs(rest) >= 1:
        bars.append(("rest", rest))
    with style.styled():
        return _draw(comparison, bars or [("no change", 0.0)])


def _draw(comparison: Diff, bars: Sequence[tuple[str, float]]) -> Figure:
    figure = style.new_figure(1.1 + 0.36 * max(len(bars), 2))
    axes = figure.add_subplot()
    delta = comparison.after_step_ns - comparison.before_step_ns
    change = f"{duration(comparison.before_step_ns)} → {duration(comparison.after_step_ns)}"
    axes.set_title(f"Device time per step: {change} ({signed(delta, MINUS)})")
    for at, (_, value) in enumerate(bars):
        _draw_bar(axes, at, value)
    _set_limits(axes, [value for _, value in bars])
    axes.set_ylim(max(len(bars), 2) - 0.4, -0.6)
    axes.set_yticks(range(len(bars)), [style.label(name, 24) for name, _ in bars])
    axes.axvline(0, color=style.MUTED, linewidth=1.0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xticks([])
    axes.tick_params(length=0)
    return figure


def _draw_bar(axes: Axes, at: int, value: float) -> None:
    slower = value > 0
    axes.barh(at, value, height=0.62, color=style.VERMILION if slower else style.BLUE)
    axes.annotate(
        signed(value, MINUS),
        (value, at),
        (5 if slower else -5, 0),
        textcoords="offset points",
        va="center",
        ha="left" if slower else "right",
        fontsize=style.SMALL,
        color=style.MUTED,
    )


def _set_limits(axes: Axes, values: Sequence[float]) -> None:
    """Give bars and their figures room, and say under each side that has bars what it means."""
    low, high = min(0.0, *values), max(0.0, *values)
    room = (high - low or 1.0) * 0.24
    # A side on which nothing changed gets no room, unless that is so of both.
    axes.set_xlim(low - (room if low < 0 or high <= 0 else 0), high + (room if high > 0 or low >= 0 else 0))
    for side, text, used in (("right", "← faster  ", low < 0), ("left", "  slower →", high > 0)):
        if used:
            below = axes.get_xaxis_transform()
            axes.annotate(text, (0, 0), xycoords=below, ha=side, va="top", fontsize=style.FONT, color=style.MUTED)
