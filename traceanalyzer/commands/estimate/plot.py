"""Plot of an estimate: what limits a decode step over the batch, in shares of its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traceanalyzer.show.plots import style
from traceanalyzer.wording import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "memory": "limited by memory",
    "compute": "limited by compute",
    "latency": "limited by launches",
    "communication": "communication",
    "host": "host",
}
COLOURS = {
    "memory": style.BLUE,
    "compute": style.VERMILION,
    "latency": style.GREY,
    "communication": style.PURPLE,
    "host": style.SKY,
}


def time_by_bound(rows: Sequence[Mapping[str, float]], title: str) -> Figure:
    """Draw what limits a decode step over the batch, as shares of its time.

    Args:
        rows: for each batch its ``batch`` and the time of a step by bound, in ns.
        title: shown above.
    """
    with style.styled():
        return _draw(rows, title)


def _draw(rows: Sequence[Mapping[str, float]], title: str) -> Figure:
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure = style.new_figure(4.8)
    axes = figure.add_subplot()
    batches = [row["batch"] for row in rows]
    shown = [bound for bound in LABELS if any(row.get(bound) for row in rows)]
    axes.stackplot(
        batches,
        [[100 * row.get(bound, 0.0) / sum(row.get(one, 0.0) for one in LABELS) for row in rows] for bound in shown],
        labels=[LABELS[bound] for bound in shown],
        colors=[COLOURS[bound] for bound in shown],
        edgecolor=style.PAPER,
        linewidth=0.6,
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_xlim(batches[0], batches[-1])
    axes.set_ylim(0, 100)
    axes.set_xlabel("sequences of a decode step")
    axes.set_ylabel("% of the step's time")
    axes.set_title(visible(title))
    handles, labels = axes.get_legend_handles_labels()
    # Below the axes, which are full.
    figure.legend(handles[::-1], labels[::-1], loc="outside lower left", ncols=3, handlelength=1.0)
    return figure
