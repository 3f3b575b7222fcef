"""Plot of an estimate: what limits a decode step over the batch, in shares of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.commands.estimate.compute import DeploymentEstimate, mean_context, step_over_batches
from traceanalyzer.show.plots import style
from traceanalyzer.wording import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDS = {
    "memory": ("limited by memory", style.BLUE),
    "compute": ("limited by compute", style.VERMILION),
    "latency": ("limited by launches", style.GREY),
    "communication": ("communication", style.PURPLE),
    "host": ("host", style.SKY),
}
"""What limits an op -> label and colour."""


def time_by_bound(first: DeploymentEstimate) -> Figure:
    """Draw what limits a decode step over the batch, as shares of its time."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    rows = step_over_batches(first.deployment, mean_context(first.answer.isl, first.answer.osl))
    with style.styled():
        figure = style.new_figure(4.8)
        axes = figure.add_subplot()
        batches = [row["batch"] for row in rows]
        shown = [bound for bound in BOUNDS if any(row.get(bound) for row in rows)]
        axes.stackplot(
            batches,
            [[100 * row.get(bound, 0.0) / sum(row.get(one, 0.0) for one in BOUNDS) for row in rows] for bound in shown],
            labels=[BOUNDS[bound][0] for bound in shown],
            colors=[BOUNDS[bound][1] for bound in shown],
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
        axes.set_title(visible(f"{first.answer.model}, {first.answer.gpu}"))
        handles, labels = axes.get_legend_handles_labels()
        # Below the axes, which are full.
        figure.legend(handles[::-1], labels[::-1], loc="outside lower left", ncols=3, handlelength=1.0)
        return figure
