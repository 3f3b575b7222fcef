"""The plot of the benchmarks' page, as SVG whose bytes depend on the numbers only."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Okabe and Ito's colours, told apart by people with colour blindness, and their darker or lighter kin.
COLOURS = ("#0072B2", "#56B4E9", "#5E4FA2", "#000000", "#E69F00", "#009E73", "#CC79A7", "#8C564B", "#7F7F7F", "#B8860B")
LAST = "#D55E00"
MARKERS = "osD^v<>PX*h"


@dataclass(frozen=True)
class Line:
    """A route's times.

    Attributes:
        title: in the legend.
        points: (raw MB, wall s), smallest first.
    """

    title: str
    points: Sequence[tuple[float, float]]


def growth(lines: Sequence[Line], title: str) -> bytes:
    """Return wall time by size, both logarithmic, with a grey line of linear growth for the eye.

    The background is white and opaque, so that it can be read on a light and on a dark page.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"svg.hashsalt": "traceanalyzer", "svg.fonttype": "path", "font.size": 10, "axes.grid": True}
    with mpl.rc_context(style):
        figure = Figure(figsize=(8.2, 4.8), facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        ordered = sorted(lines, key=lambda line: -line.points[-1][1])
        for number, line in enumerate(ordered):
            place = lines.index(line)
            axes.plot(
                [size for size, _ in line.points],
                [time for _, time in line.points],
                color=LAST if line.title == "HTA" else COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)],
                linewidth=2.6 if line.title == "traceanalyzer" else 1.4,
                markersize=5,
                label=line.title,
                zorder=3 + (len(ordered) - number) / 100,
            )
        _linear(axes, lines)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(_plain)
        axes.yaxis.set_major_formatter(_plain)
        axes.set_xlabel("raw JSON, MB")
        axes.set_ylabel("wall time, s")
        axes.set_title(title, fontsize=11, loc="left")
        axes.grid(color="#dddddd", linewidth=0.6)
        figure.legend(loc="outside right center", fontsize=9, frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _linear(axes: object, lines: Sequence[Line]) -> None:
    """Draw time proportional to size through the smallest point of the slowest line."""
    sizes = [size for line in lines for size, _ in line.points]
    size, time = max((line.points[-1] for line in lines), key=lambda point: point[1])
    axes.plot(  # type: ignore[attr-defined]
        [min(sizes), max(sizes)],
        [time / size * min(sizes), time / size * max(sizes)],
        color="#999999",
        linestyle=":",
        linewidth=1,
        label="linear",
    )


def _plain(value: float, _: object) -> str:
    return f"{value:g}"
