"""A roofline plot: the peak and the achievable roof, and one point a row, as large as its share of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from traceanalyzer.analysis.roofline import Roofline, Row
from traceanalyzer.problems import TraceError
from traceanalyzer.report.plots import style
from traceanalyzer.report.text import cut_middle, percent, visible

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

LARGEST_AREA = 1400.0
SMALLEST_AREA = 45.0


@dataclass(frozen=True)
class Point:
    """One row as it is drawn: x in FLOP a byte, y in TFLOP/s."""

    label: str
    x: float
    y: float
    share: float
    style: str


def points_of(found: Roofline) -> tuple[list[Point], list[str]]:
    """Return the rows that can be drawn, most time first, and the labels of large rows that have no FLOP or bytes."""
    shown: list[Point] = []
    left_out: list[str] = []
    for row in found.rows:
        share = row.measured_ns / found.measured_ns if found.measured_ns else 0.0
        if share < LEAST_SHARE or len(shown) >= MOST_POINTS:
            continue
        label = _plain(cut_middle(row.label, LABEL_LENGTH))
        if row.intensity and row.tflops:
            shown.append(Point(f"{label} {percent(share)}", row.intensity, row.tflops, share, _style(row)))
        else:
            left_out.append(label)
    return shown, left_out


def _plain(text: str) -> str:
    """Untrusted text that is drawn as it is: no control characters; formulas are off."""
    return visible(text)


def _style(row: Row) -> str:
    return row.bound if row.plausible else "implausible"


def draw(found: Roofline, path: Path) -> None:
    """Draw the roofline and write it as PNG, SVG or PDF, by the suffix of the path.

    Raises:
        TraceError: there is no GPU or no row to draw, or the file cannot be written.
    """
    try:
        figure = roofline_figure(found)
    except TraceError as error:
        raise TraceError(str(path), error.reason) from error
    style.save(figure, path)


def roofline_figure(found: Roofline) -> Figure:
    """Draw the roofline.

    Raises:
        TraceError: there is no GPU or no row to draw.
    """
    points, left_out = points_of(found)
    if found.ceilings is None:
        raise TraceError("plot", "no plot: the GPU is unknown; pass --gpu NAME")
    if not points:
        raise TraceError("plot", "no plot: no row has known FLOP and bytes; pass --model NAME or config.json")
    with style.styled():
        return _figure(found, points, left_out)


def _figure(found: Roofline, points: Sequence[Point], left_out: Sequence[str]) -> Figure:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure = style.new_figure(HEIGHT, WIDTH)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("arithmetic intensity, FLOP a byte")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(_title(found))
    _limits(axes, found, points)
    roofs = _roofs(axes, found)
    for point in sorted(points, key=lambda one: -one.share):
        colour, marker = style.BOUNDS[point.style]
        axes.scatter(
            point.x,
            point.y,
            s=_area(point.share),
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
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    place_labels(axes, points, roofs)
    return figure


def _title(found: Roofline) -> str:
    model = found.model.name.rsplit("/", 1)[-1] if found.model else "unknown model"
    inferred = " (inferred)" if found.model_source == "inferred" else ""
    gpu = found.ceilings.gpu.name if found.ceilings else ""
    floor = "" if found.floor_ns is None else f", floor {found.floor_ns / 1e6:.2f} ms"
    phase = f"{found.phase} step" if found.phase else "step"
    return f"{_plain(model)}{inferred} on {_plain(gpu)}\n{phase}: {found.measured_ns / 1e6:.2f} ms of kernels{floor}"


def _area(share: float) -> float:
    return max(LARGEST_AREA * share, SMALLEST_AREA)


def _limits(axes: Axes, found: Roofline, points: Sequence[Point]) -> None:
    ceilings = found.ceilings
    assert ceilings is not None
    peak = max(ceilings.peak_tflops(dtype) or 0.0 for dtype in _dtypes(found))
    ridge = peak * 1e3 / ceilings.gpu.bandwidth_gbps
    low, high = min(point.x for point in points), max(point.x for point in points)
    axes.set_xlim(10 ** math.floor(math.log10(low / 2)), 10 ** math.ceil(math.log10(max(high, ridge) * 3)))
    axes.set_ylim(10 ** math.floor(math.log10(min(point.y for point in points) / 2)), peak * 5)


def _dtypes(found: Roofline) -> list[str]:
    """Data types of the drawn rows whose arithmetic counts, most time first; the GPU's first peak without any."""
    assert found.ceilings is not None
    times: dict[str, float] = {}
    for row in found.rows:
        if row.dtype and row.flops and (row.role in PRODUCTS or row.bound == "compute"):
            times[row.dtype] = times.get(row.dtype, 0.0) + row.measured_ns
    known = [dtype for dtype in sorted(times, key=lambda dtype: -times[dtype]) if found.ceilings.peak_tflops(dtype)]
    return known[:2] or [next(iter(found.ceilings.gpu.peak_tflops), "bf16")]


def _roofs(axes: Axes, found: Roofline) -> list[tuple[float, float]]:
    """Draw the roofs and return points along them, in data coordinates, that labels keep away from."""
    ceilings = found.ceilings
    assert ceilings is not None
    left, right = axes.get_xlim()
    xs = [left * (right / left) ** (i / 200) for i in range(201)]
    kept: list[tuple[float, float]] = []
    for number, dtype in enumerate(_dtypes(found)):
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


def _legend(axes: Axes, points: Sequence[Point]) -> None:
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
            label=_bound_words(name),
        )
        for name in used
    ]
    axes.legend(handles=handles, loc="lower right", framealpha=1.0, fontsize=12, title="bound (size: share of time)")


def _bound_words(name: str) -> str:
    return "above its roof: implausible" if name == "implausible" else name


Box = tuple[float, float, float, float]
Spot = tuple[float, float]

RINGS, TURNS = 14, 16
"""Places tried around a point: so many distances, and so many directions at each."""


def place_labels(axes: Axes, points: Sequence[Point], roofs: Sequence[tuple[float, float]]) -> list[Box]:
    """Write each point's label where it meets no other label, marker, roof or leader; a leader joins it to its point.

    Positions around the point are tried from near to far, the largest points first.

    Returns:
        the labels' boxes in pixels: left, bottom, right, top.
    """
    figure: Any = axes.figure
    scale = figure.dpi / 72
    renderer = figure.canvas.get_renderer()
    frame = _box(axes.get_window_extent(renderer))
    centres = [_pixels(axes, point.x, point.y) for point in points]
    room = _Room(
        frame=frame,
        taken=[_marker_box(centre, point.share, scale) for centre, point in zip(centres, points, strict=True)]
        + [_box(text.get_window_extent(renderer)) for text in axes.texts],
        lines=[_pixels(axes, x, y) for x, y in roofs],
    )
    legend = axes.get_legend()
    if legend is not None:
        room.taken.append(_box(legend.get_window_extent(renderer)))
    placed: list[Box] = []
    for centre, point in sorted(zip(centres, points, strict=True), key=lambda pair: -pair[1].share):
        text = axes.text(point.x, point.y, point.label, fontsize=style.FONT - 0.5, zorder=5)
        size = text.get_window_extent(renderer)
        text.remove()
        box, ring = room.place(centre, (size.width, size.height), _radius(point.share, scale))
        placed.append(box)
        x, y = axes.transData.inverted().transform(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
        leader = {"arrowstyle": "-", "color": style.MUTED, "linewidth": 0.9, "shrinkA": 1, "shrinkB": 0}
        axes.annotate(
            point.label,
            (point.x, point.y),
            (float(x), float(y)),
            ha="center",
            va="center",
            fontsize=style.FONT - 0.5,
            zorder=5,
            arrowprops=leader if ring else None,
        )
    return placed


def _pixels(axes: Axes, x: float, y: float) -> Spot:
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


def _radius(share: float, scale: float) -> float:
    return math.sqrt(_area(share) / math.pi) * scale


def _marker_box(centre: Spot, share: float, scale: float) -> Box:
    radius = _radius(share, scale)
    return (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)


def _box(extent: Any) -> Box:
    return (float(extent.x0), float(extent.y0), float(extent.x1), float(extent.y1))


@dataclass(frozen=True)
class _Room:
    """What of the drawing is taken, in pixels: boxes, and spots along lines."""

    frame: Box
    taken: list[Box]
    lines: list[Spot]
    labels: list[Box] = field(default_factory=list)

    def place(self, centre: Spot, size: tuple[float, float], radius: float) -> tuple[Box, int]:
        """Take the nearest free place around a point, or that which covers least; with its distance in rings."""
        tried = [option for option in _options(centre, size, radius) if _inside(option[0], self.frame)]
        best = min(tried or _options(centre, size, radius), key=lambda option: self._cost(centre, *option))
        box, ring = best
        self.taken.append(box)
        self.labels.append(box)
        self.lines.extend(_leader(centre, box) if ring else [])
        return best

    def _cost(self, centre: Spot, box: Box, ring: int) -> float:
        covered = sum(_overlap(box, other) for other in self.taken)
        crossed = sum(_holds(box, spot) for spot in self.lines)
        led_over = sum(_holds(other, spot) for spot in _leader(centre, box) for other in self.labels) if ring else 0
        return covered * 100 + crossed * 60 + led_over * 40 + ring


def _options(centre: Spot, size: tuple[float, float], radius: float) -> list[tuple[Box, int]]:
    found = []
    for ring in range(RINGS):
        for turn in range(TURNS):
            angle = 2 * math.pi * turn / TURNS
            away = radius + 4 + ring * 14
            x = centre[0] + math.cos(angle) * (away + size[0] / 2)
            y = centre[1] + math.sin(angle) * (away + size[1] / 2)
            across, up = size[0] / 2 + 2, size[1] / 2 + 2
            found.append(((x - across, y - up, x + across, y + up), ring))
    return found


def _leader(centre: Spot, box: Box) -> list[Spot]:
    """Spots on the way from a point to the nearest edge of its label."""
    x, y = min(max(centre[0], box[0]), box[2]), min(max(centre[1], box[1]), box[3])
    steps = 24
    return [(centre[0] + (x - centre[0]) * i / steps, centre[1] + (y - centre[1]) * i / steps) for i in range(1, steps)]


def _inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _holds(box: Box, spot: Spot) -> bool:
    return box[0] < spot[0] < box[2] and box[1] < spot[1] < box[3]


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0
