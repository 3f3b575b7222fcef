"""Figures of a trace that need no roofline, so that they can be drawn while it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceanalyzer.commands.blocks.plot import block_strip
from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.commands.hotspots.plot import kernels_by_time
from traceanalyzer.problems import TraceError
from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.outliers import Outlier
from traceanalyzer.show.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRED_INCHES = 6.2
"""Width of a figure that stands beside a table."""

MOST_ROLES = 14


@dataclass(frozen=True)
class Pictures:
    """The figures as SVG files.

    Attributes:
        roles: kernel time by role.
        blocks: kernel time of each block, stacked; None where there are no blocks.
    """

    roles: str
    blocks: str | None


def draw(
    roles: Hotspots, title: str, cut: Segmentation, phase: str | None, rank: int | None, outliers: Sequence[Outlier]
) -> Pictures:
    """Draw the figures.

    Args:
        roles: the ranking by role.
        title: what stands above it.
        cut: the segmentation.
        phase: whose blocks are drawn; None for all.
        rank: of the trace.
        outliers: outlier blocks.
    """
    bars = kernels_by_time(roles, "role", limit=MOST_ROLES, title=title, width=PAIRED_INCHES)
    try:
        strip = block_strip(cut, rank, PAIRED_INCHES, outliers, phase)
    except TraceError:
        return Pictures(_svg(bars), None)
    return Pictures(_svg(bars), _svg(strip))


def _svg(figure: Figure) -> str:
    return style.encoded(figure, "svg").decode()
