"""Regret by number of evaluations, one small plot a recorded sweep, as SVG whose bytes depend on the numbers only."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

COLOURS = {"guided": "#D55E00", "random": "#0072B2", "table order": "#7F7F7F"}
TITLES = {"guided": "traceanalyzer's search", "random": "random search", "table order": "in the order of the table"}
STYLES = {"guided": "-", "random": "--", "table order": ":"}
COLUMNS = 2
MOST_LINEAR = 20
"""Evaluations up to which the axis is linear."""


def regret_plots(tables: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> bytes:
    """Return medians as lines and quartiles as bands; the background is white and opaque, for dark pages too."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = -(-len(tables) // COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "traceanalyzer", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8.2, 3.1 * rows + 0.4), facecolor="white", layout="constrained")
        grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for axes, table, title in zip(grid, tables, titles, strict=False):
            _draw(axes, table, title)
        for axes in grid[len(tables) :]:
            axes.set_visible(False)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _draw(axes: Any, table: Mapping[str, Any], title: str) -> None:
    count = [each["evaluations"] for each in table["budgets"]]
    for strategy, colour in COLOURS.items():
        # Where nothing that was tried ran there is no regret: the line has a gap.
        low, middle, high = (
            [
                float("nan") if each["regret"][strategy][i] is None else 100 * each["regret"][strategy][i]
                for each in table["budgets"]
            ]
            for i in range(3)
        )
        axes.fill_between(count, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(count, middle, STYLES[strategy], color=colour, marker="o", markersize=3, label=TITLES[strategy])
    axes.set_title(title, fontsize=10, loc="left")
    if max(count) > MOST_LINEAR:
        axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=-0.5)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    axes.set_xlabel("evaluations in each space")
    axes.set_ylabel("regret, %")
    axes.grid(color="#dddddd", linewidth=0.6)


def _plain(value: float, _: object) -> str:
    return f"{value:g}"
