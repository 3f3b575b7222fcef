"""Ranks side by side: a bar per rank, split into computing, communication that nothing hides, and idling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.show.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = (
    ("compute_ns", "computing", style.BLUE, ""),
    ("exposed_comm_ns", "communication, exposed", style.PURPLE, "///"),
    ("exposed_copy_ns", "copies, exposed", style.GREEN, ""),
    ("idle_ns", "idle", style.GRID, ""),
)
NUMBERS_FIT = 40


def time_by_rank(comparison: RankComparison) -> Figure:
    """Draw where each rank's recorded time went."""
    from matplotlib.ticker import FuncFormatter

    with style.styled():
        rows = comparison.per_rank
        figure = style.new_figure(1.6 + min(0.34 * rows.height, 10.0))
        axes = figure.add_subplot()
        axes.set_title("Where each rank's time goes")
        size, unit = style.time_unit(max([0.0, *(float(value) for value in rows["span_ns"].drop_nulls())]))
        left = [0.0] * rows.height
        for column, name, colour, hatch in PARTS:
            values = [(value or 0) / size for value in rows[column].to_list()]
            if any(values):
                axes.barh(
                    range(rows.height),
                    values,
                    left=left,
                    height=0.7,
                    color=colour,
                    hatch=hatch,
                    edgecolor=style.PAPER,
                    linewidth=0.4,
                    label=name,
                )
            left = [start + value for start, value in zip(left, values, strict=True)]
        every = 1 if rows.height <= NUMBERS_FIT else rows.height // 20
        ranks = rows["rank"].to_list()
        axes.set_yticks(range(0, rows.height, every), [f"rank {rank}" for rank in ranks[::every]])
        axes.set_ylim(rows.height - 0.4, -0.6)
        axes.set_xlabel(f"{unit} of the recording")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        style.only_x_grid(axes)
        figure.legend(loc="outside lower left", ncols=4, handlelength=1.0, columnspacing=1.2)
    return figure
