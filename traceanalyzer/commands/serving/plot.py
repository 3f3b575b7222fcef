"""Plots of serving results: output tokens/s over concurrency, one curve per configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceanalyzer.problems import TraceError
from traceanalyzer.serving.comparison import mean_of
from traceanalyzer.serving.grouping import RunGroup
from traceanalyzer.show.plots import style
from traceanalyzer.wording import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "output_throughput"

LABEL_LENGTH = 36


@dataclass(frozen=True)
class Curve:
    """Tokens/s by load, with half widths of confidence intervals where runs were repeated."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    half_widths: tuple[float, ...]


def curves(groups: Mapping[str, Sequence[RunGroup]]) -> tuple[list[Curve], str]:
    """Return the curves over concurrency, else over the request rate, and the name of that axis.

    Raises TraceError where no result has both a load and output tokens/s.
    """
    for axis, label in (("concurrency", "concurrent requests"), ("request_rate", "requests sent per second")):
        drawn = [curve for name, points in groups.items() if (curve := _curve(name, points, axis)) is not None]
        if drawn:
            return drawn, label
    raise TraceError("plot", "nothing to draw: no result states both a concurrency and output tokens/s")


def throughput_curves(groups: Mapping[str, Sequence[RunGroup]], title: str = "") -> Figure:
    """Draw ``curves``; by default the title is the name of an only curve."""
    drawn, label = curves(groups)
    with style.styled():
        return _draw(drawn, label, title)


def _curve(name: str, points: Sequence[RunGroup], axis: str) -> Curve | None:
    rows = []
    for point in points:
        load: float | None = getattr(point.load, axis)
        speed = mean_of(point, METRIC)
        if load is not None and speed is not None:
            rows.append((load, speed.mean, speed.half_width or 0.0))
    if not rows:
        return None
    x, y, half = zip(*sorted(rows), strict=True)
    return Curve(name, x, y, half)


def _draw(drawn: Sequence[Curve], label: str, title: str) -> Figure:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = style.new_figure(4.8)
    axes = figure.add_subplot()
    for i, curve in enumerate(drawn):
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.half_widths if any(curve.half_widths) else None,
            label=_label(curve.name),
            color=style.SERIES[i % len(style.SERIES)],
            marker=style.MARKERS[i % len(style.MARKERS)],
            linestyle=style.DASHES[i % len(style.DASHES)],
            linewidth=2.2,
            markersize=7,
            capsize=4,
        )
    ticks = sorted({x for curve in drawn for x in curve.x})
    if len(ticks) > 1 and ticks[-1] / ticks[0] >= 8:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(_thinned(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    highest = max(y + half for curve in drawn for y, half in zip(curve.y, curve.half_widths, strict=True))
    axes.set_ylim(0, highest * 1.1 or 1.0)
    axes.margins(x=0.04)
    axes.set_xlabel(label)
    axes.set_ylabel("output tokens/s")
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    if title or len(drawn) == 1:
        axes.set_title(_label(title or drawn[0].name))
    if len(drawn) > 1:
        axes.legend(loc="upper left")
    return figure


def _thinned(ticks: Sequence[float]) -> list[float]:
    """Return the ticks that have room: from the last down, each at least 12 % below the next (chosen, not fitted)."""
    kept: list[float] = []
    for tick in reversed(ticks):
        if not kept or (tick > 0 and kept[-1] / tick > 1.12):
            kept.append(tick)
    return kept[::-1][-14:]


def _label(name: str) -> str:
    text = visible(name)
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"
