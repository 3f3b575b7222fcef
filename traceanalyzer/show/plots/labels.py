"""Where the labels of points stand: near their points, on nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from traceanalyzer.show.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_AREA = 1400.0
SMALLEST_AREA = 45.0
"""Points squared of a marker; chosen by eye."""


@dataclass(frozen=True)
class PlotPoint:
    """One point as it is drawn: x and y in the units of the axes, its share of the time as its area."""

    label: str
    x: float
    y: float
    share: float
    style: str


def marker_area(share: float) -> float:
    """Points squared that a share of the time is drawn as; the least is still seen."""
    return max(LARGEST_AREA * share, SMALLEST_AREA)


Box = tuple[float, float, float, float]
Spot = tuple[float, float]

RINGS, TURNS = 14, 16
"""Places tried around a point: so many distances, and so many directions at each."""


def place_labels(axes: Axes, points: Sequence[PlotPoint], roofs: Sequence[tuple[float, float]]) -> list[Box]:
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
    return math.sqrt(marker_area(share) / math.pi) * scale


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
        box, ring = best = self._cheapest(centre, tried or _options(centre, size, radius))
        self.taken.append(box)
        self.labels.append(box)
        self.lines.extend(_leader(centre, box) if ring else [])
        return best

    def _cheapest(self, centre: Spot, options: Sequence[tuple[Box, int]]) -> tuple[Box, int]:
        """The first option of least cost; options go from near to far, and none costs less than its ring."""
        best, least = options[0], math.inf
        for box, ring in options:
            if least <= ring:
                break
            cost = self._cost(centre, box, ring, least)
            if cost < least:
                best, least = (box, ring), cost
        return best

    def _cost(self, centre: Spot, box: Box, ring: int, least: float) -> float:
        """What a place covers and crosses, weighed by eye; counting stops above the least cost so far."""
        covered = sum(_overlap(box, other) for other in self.taken)
        if covered * 100 + ring >= least:
            return math.inf
        crossed = sum(_holds(box, spot) for spot in self.lines)
        led_over = sum(_holds(other, spot) for spot in _leader(centre, box) for other in self.labels) if ring else 0
        return covered * 100 + crossed * 60 + led_over * 40 + ring


def _options(centre: Spot, size: tuple[float, float], radius: float) -> list[tuple[Box, int]]:
    places = []
    for ring in range(RINGS):
        for turn in range(TURNS):
            angle = 2 * math.pi * turn / TURNS
            away = radius + 4 + ring * 14
            x = centre[0] + math.cos(angle) * (away + size[0] / 2)
            y = centre[1] + math.sin(angle) * (away + size[1] / 2)
            across, up = size[0] / 2 + 2, size[1] / 2 + 2
            places.append(((x - across, y - up, x + across, y + up), ring))
    return places


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
