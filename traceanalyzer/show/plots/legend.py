"""What colours and hatches mean, said below a figure in as many columns as fit its width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from traceanalyzer.show.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER_INCHES = 0.088
"""Width of a letter of the legend."""
PATCH_LETTERS = 5
"""Letters that the patch beside an entry takes, with the space around it."""


@dataclass(frozen=True)
class LegendEntry:
    """A colour, with or without a hatch, and what it stands for."""

    name: str
    colour: str
    hatch: str = ""


def legend_columns(entries: Sequence[LegendEntry], width: float) -> int:
    """As many columns as fit the width, in inches; Matplotlib fills them from the first, as evenly as it can."""
    for columns in range(len(entries), 1, -1):
        rows, longer = divmod(len(entries), columns)
        ends = [at * rows + min(at, longer) for at in range(columns + 1)]
        widest = [max(len(one.name) for one in entries[start:end]) for start, end in pairwise(ends)]
        if sum(length + PATCH_LETTERS for length in widest) * LETTER_INCHES <= width:
            # As few columns as make no more rows, so that rows are of about equal length.
            return math.ceil(len(entries) / math.ceil(len(entries) / columns))
    return 1


def legend_height(entries: Sequence[LegendEntry], width: float) -> float:
    """Inches that the legend takes of a figure's height."""
    return 0.1 + 0.25 * math.ceil(len(entries) / legend_columns(entries, width)) if entries else 0.0


def draw_legend(figure: Figure, entries: Sequence[LegendEntry]) -> None:
    """Write the legend below a figure that keeps ``legend_height`` for it; call within ``style.styled``."""
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(facecolor=one.colour, hatch=one.hatch, edgecolor=style.PAPER, linewidth=0, label=one.name)
            for one in entries
        ],
        loc="outside lower left",
        ncols=legend_columns(entries, figure.get_figwidth()),
        handlelength=1.0,
        columnspacing=1.2,
        handletextpad=0.5,
    )
