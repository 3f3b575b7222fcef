"""Times as horizontal bars, each with its value, its share, and its name; what their colours mean, said below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from traceanalyzer.show.plots import style
from traceanalyzer.wording import duration, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LETTER_INCHES = 0.088
"""Width of a letter of the legend, on average; chosen by eye."""
PATCH_LETTERS = 5
"""Letters that the patch beside an entry takes, with the space around it."""


@dataclass(frozen=True)
class Bar:
    """A bar: what it says, how long it is (ns), how it looks."""

    name: str
    value_ns: float
    colour: str
    hatch: str = ""


def time_bars(
    bars: Sequence[Bar],
    total_ns: float,
    title: str,
    *,
    names_above: bool,
    width: float = style.WIDTH,
    entries: Sequence[LegendEntry] = (),
    nothing: str = "",
) -> Figure:
    """Draw bars from the top down; call within ``style.styled``.

    Args:
        total_ns: what shares are of.
        names_above: whether a name stands above its bar, where a long one takes no room beside the axis.
        entries: what colours and hatches stand for, said below.
        nothing: what is said where there are no bars.
    """
    count = max(len(bars), 1)
    height = 0.8 + (0.5 if names_above else 0.34) * count + legend_height(entries, width)
    figure = style.new_figure(height, width)
    axes = figure.add_subplot()
    axes.set_title(title)
    if not bars:
        axes.annotate(nothing, (0, 0.5), xycoords="axes fraction", va="center", color=style.MUTED)
    for at, bar in enumerate(bars):
        _draw_bar(axes, at, bar, total_ns, name_above=names_above)
    axes.set_ylim(count - 0.5, -0.85 if names_above else -0.6)
    axes.set_xlim(0, max((bar.value_ns for bar in bars), default=1.0) * 1.33)
    axes.set_yticks([] if names_above else range(len(bars)), None if names_above else [bar.name for bar in bars])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(bool(bars) and not names_above)
    axes.tick_params(length=0)
    for text in axes.texts:
        style.fit(text, 0.97 * figure.bbox.width)
    if entries:
        draw_legend(figure, entries)
    return figure


def _draw_bar(axes: Axes, at: int, bar: Bar, total_ns: float, *, name_above: bool) -> None:
    axes.barh(
        at,
        bar.value_ns,
        height=0.36 if name_above else 0.62,
        color=bar.colour,
        hatch=bar.hatch,
        edgecolor=style.PAPER,
        linewidth=0,
    )
    if name_above:
        place = (0, at - 0.22)
        axes.annotate(bar.name, place, (0, 1), textcoords="offset points", va="bottom", fontsize=style.SMALL)
    axes.annotate(
        f"{duration(bar.value_ns)} · {percent(bar.value_ns / total_ns)}",
        (bar.value_ns, at),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=style.SMALL,
        color=style.MUTED,
    )


@dataclass(frozen=True)
class LegendEntry:
    """A colour, with or without a hatch, and what it stands for."""

    name: str
    colour: str
    hatch: str = ""


def legend_columns(entries: Sequence[LegendEntry], width: float) -> int:
    """As many columns as fit the width, in inches; Matplotlib fills them from the first, as evenly as it can."""
    for columns in range(len(entries), 1, -1):
        rows, longer = divmod(len(entries), columns)
        ends = [at * rows + min(at, longer) for at in range(columns + 1)]
        widest = [max(len(one.name) for one in entries[start:end]) for start, end in pairwise(ends)]
        if sum(length + PATCH_LETTERS for length in widest) * LETTER_INCHES <= width:
            # As few columns as make no more rows, so that rows are of about equal length.
            return math.ceil(len(entries) / math.ceil(len(entries) / columns))
    return 1


def legend_height(entries: Sequence[LegendEntry], width: float) -> float:
    """Inches that the legend takes of a figure's height."""
    return 0.1 + 0.25 * math.ceil(len(entries) / legend_columns(entries, width)) if entries else 0.0


def draw_legend(figure: Figure, entries: Sequence[LegendEntry]) -> None:
    """Write the legend below a figure that keeps ``legend_height`` for it; call within ``style.styled``."""
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(facecolor=one.colour, hatch=one.hatch, edgecolor=style.PAPER, linewidth=0, label=one.name)
            for one in entries
        ],
        loc="outside lower left",
        ncols=legend_columns(entries, figure.get_figwidth()),
        handlelength=1.0,
        columnspacing=1.2,
        handletextpad=0.5,
    )
