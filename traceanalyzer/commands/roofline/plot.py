"""A roofline plot: the peak and the achievable roof, and one point per row, as large as its share of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from traceanalyzer.problems import TraceError
from traceanalyzer.roofline import Roofline, Row
from traceanalyzer.show.plots import style
from traceanalyzer.show.plots.labels import PlotPoint, marker_area, place_labels
from traceanalyzer.wording import cut_middle, percent, step_of, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_SHARE = 0.004
"""Share of the kernel time that a row must have to be drawn."""

MOST_POINTS = 14
PRODUCTS = frozenset(
    {"qkv_proj", "o_proj", "router", "gate_up", "down", "moe_gate_up", "moe_down", "lm_head", "attention"}
)
"""Roles whose arithmetic decides which data type's peak is drawn."""

LABEL_LENGTH = 26
NOTE_LENGTH = 92
WIDTH, HEIGHT = 9.6, 6.6
"""Inches."""


def points_of(roofline: Roofline) -> tuple[list[PlotPoint], list[str]]:
    """Return the rows that can be drawn, most time first, and the labels of large rows that have no FLOP or bytes."""
    shown: list[PlotPoint] = []
    left_out: list[str] = []
    for row in roofline.rows:
        share = row.measured_ns / roofline.measured_ns if roofline.measured_ns else 0.0
        if share < LEAST_SHARE or len(shown) >= MOST_POINTS:
            continue
        label = visible(cut_middle(row.label, LABEL_LENGTH))
        if row.intensity and row.tflops:
            shown.append(PlotPoint(f"{label} {percent(share)}", row.intensity, row.tflops, share, _style(row)))
        else:
            left_out.append(label)
    return shown, left_out


def _style(row: Row) -> str:
    return row.bound if row.plausible else "implausible"


def roofline_figure(roofline: Roofline) -> Figure:
    """Draw the roofline.

    Raises:
        TraceError: there is no GPU or no row to draw.
    """
    points, left_out = points_of(roofline)
    if roofline.ceilings is None:
        raise TraceError("plot", "no plot: the GPU is unknown; pass --gpu NAME")
    if not points:
        raise TraceError("plot", "no plot: no row has known FLOP and bytes; pass --model NAME or config.json")
    with style.styled():
        return _figure(roofline, points, left_out)


def _figure(roofline: Roofline, points: Sequence[PlotPoint], left_out: Sequence[str]) -> Figure:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = style.new_figure(HEIGHT, WIDTH)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
        # Two marks per decade say where one is; all eight take most of the time of drawing.
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.set_xlabel("arithmetic intensity, FLOP per byte")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(_title(roofline))
    _limits(axes, roofline, points)
    roofs = _roofs(axes, roofline)
    for point in sorted(points, key=lambda one: -one.share):
        colour, marker = style.BOUNDS[point.style]
        axes.scatter(
            point.x,
            point.y,
            s=marker_area(point.share),
            c=colour,
            marker=marker,
            alpha=0.85,
            edgecolors=style.PAPER,
            zorder=3,
        )
    _legend(axes, points)
    if left_out:
        note = f"not drawn, without known FLOP or bytes: {', '.join(dict.fromkeys(left_out))}"
        axes.annotate(
            "\n".join(wrap(note, NOTE_LENGTH, max_lines=2, placeholder=" …")),
            (0, 0),
            (0, -58),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            fontsize=style.SMALL,
            color=style.MUTED,
        )
    axes.grid(visible=True, which="major", zorder=0)
    # The layout settles in its second run; then it has to stay, or labels would move against their points.
    style.arrange(figure)
    style.arrange(figure)
    figure.set_layout_engine("none")
    place_labels(axes, points, roofs)
    return figure


def _title(roofline: Roofline) -> str:
    model = roofline.model.name.rsplit("/", 1)[-1] if roofline.model else "unknown model"
    inferred = " (inferred)" if roofline.model_source == "inferred" else ""
    gpu = roofline.ceilings.gpu.name if roofline.ceilings else ""
    floor = "" if roofline.floor_ns is None else f", floor {roofline.floor_ns / 1e6:.2f} ms"
    kernels = f"{step_of(roofline.phase)}: {roofline.measured_ns / 1e6:.2f} ms of kernels"
    return f"{visible(model)}{inferred} on {visible(gpu)}\n{kernels}{floor}"


def _limits(axes: Axes, roofline: Roofline, points: Sequence[PlotPoint]) -> None:
    ceilings = roofline.ceilings
    assert ceilings is not None
    peak = max(ceilings.peak_tflops(dtype) or 0.0 for dtype in _dtypes(roofline))
    ridge = peak * 1e3 / ceilings.gpu.bandwidth_gbps
    low, high = min(point.x for point in points), max(point.x for point in points)
    axes.set_xlim(10 ** math.floor(math.log10(low / 2)), 10 ** math.ceil(math.log10(max(high, ridge) * 3)))
    axes.set_ylim(10 ** math.floor(math.log10(min(point.y for point in points) / 2)), peak * 5)


def _dtypes(roofline: Roofline) -> list[str]:
    """Data types of the drawn rows whose arithmetic counts, most time first; the GPU's first peak without any."""
    assert roofline.ceilings is not None
    times: dict[str, float] = {}
    for row in roofline.rows:
        if row.dtype and row.flops and (row.role in PRODUCTS or row.bound == "compute"):
            times[row.dtype] = times.get(row.dtype, 0.0) + row.measured_ns
    known = [dtype for dtype in sorted(times, key=lambda dtype: -times[dtype]) if roofline.ceilings.peak_tflops(dtype)]
    return known[:2] or [next(iter(roofline.ceilings.gpu.peak_tflops), "bf16")]


def _roofs(axes: Axes, roofline: Roofline) -> list[tuple[float, float]]:
    """Draw the roofs and return points along them, in data coordinates, that labels keep away from."""
    ceilings = roofline.ceilings
    assert ceilings is not None
    left, right = axes.get_xlim()
    xs = [left * (right / left) ** (i / 200) for i in range(201)]
    kept: list[tuple[float, float]] = []
    for number, dtype in enumerate(_dtypes(roofline)):
        peak, reached = ceilings.peak_tflops(dtype) or 1.0, ceilings.achievable_tflops(dtype) or 1.0
        dashes = ("-", (0, (5, 2))) if number == 0 else ("-.", ":")
        for tflops, gbps, dash, width in (
            (peak, ceilings.gpu.bandwidth_gbps, dashes[0], 2.2),
            (reached, ceilings.gbps, dashes[1], 1.6),
        ):
            ys = [min(tflops, x * gbps / 1e3) for x in xs]
            axes.plot(xs, ys, linestyle=dash, color=style.INK, linewidth=width, zorder=2)
            kept += zip(xs, ys, strict=True)
        name = f"peak {dtype} {peak:,.0f} TFLOP/s"
        axes.annotate(name, (right, peak), (-6, 4), textcoords="offset points", ha="right", va="bottom", fontsize=12)
        below = f"achievable {reached:,.0f}"
        axes.annotate(below, (right, reached), (-6, -4), textcoords="offset points", ha="right", va="top", fontsize=12)
    bandwidth = f"peak {ceilings.gpu.bandwidth_gbps:,.0f} GB/s, achievable {ceilings.gbps:,.0f} (dashed)"
    axes.annotate(bandwidth, (0.02, 0.98), xycoords="axes fraction", ha="left", va="top", fontsize=12)
    return kept


def _legend(axes: Axes, points: Sequence[PlotPoint]) -> None:
    from matplotlib.lines import Line2D

    used = [name for name in style.BOUNDS if any(point.style == name for point in points)]
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=style.BOUNDS[name][1],
            color=style.BOUNDS[name][0],
            markersize=11,
            label="above its roof: implausible" if name == "implausible" else name,
        )
        for name in used
    ]
    axes.legend(
        handles=handles, loc="lower right", framealpha=1.0, fontsize=12, title="limited by (size: share of time)"
    )
