"""Labels of the plot do not collide."""

from __future__ import annotations

import pytest

from traceanalyzer.show.plots.labels import Box, PlotPoint, place_labels


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def figure(points: list[PlotPoint]) -> list[Box]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 7.5), dpi=130)
    FigureCanvasAgg(drawn)
    axes = drawn.add_subplot()
    axes.set(xscale="log", yscale="log", xlim=(0.1, 1e4), ylim=(0.01, 1e4))
    drawn.draw_without_rendering()
    return place_labels(axes, points, [(0.1 * 1.1**i, 0.5 * 1.1**i) for i in range(90)])


def spread(count: int) -> list[PlotPoint]:
    return [
        PlotPoint(f"some role {i} {i}.0 %", 10 * 1.3**i, 3 * 1.5 ** (i % 7), 0.3 / (i + 1), "memory")
        for i in range(count)
    ]


def heap(count: int) -> list[PlotPoint]:
    return [PlotPoint(f"role number {i} 3.0 %", 30.0 + i / 10, 90.0 + i, 0.05, "memory") for i in range(count)]


@pytest.mark.parametrize("points", [spread(14), heap(10), heap(1)], ids=["spread", "heap", "one"])
def test_no_two_labels_overlap(points: list[PlotPoint]) -> None:
    boxes = figure(points)
    assert len(boxes) == len(points)
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if overlap(a, b)]
