"""Figures as inline SVG that takes the colours of the page, so that it is right in dark mode and in print too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from markupsafe import Markup

from traceanalyzer.commands.blocks.plot import block_strip
from traceanalyzer.commands.hotspots.compute import Hotspots
from traceanalyzer.commands.hotspots.plot import kernels_by_time
from traceanalyzer.problems import TraceError
from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.outliers import Outlier
from traceanalyzer.show.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIABLES = {
    style.INK: "--ink",
    style.MUTED: "--muted",
    style.GRID: "--rule",
    style.PAPER: "--paper",
    style.BLUE: "--blue",
    style.VERMILION: "--vermilion",
    style.GREEN: "--green",
    style.PURPLE: "--purple",
    style.ORANGE: "--orange",
    style.SKY: "--sky",
    style.GREY: "--grey",
}
"""Colours of the plots and the variables of the page that stand for them."""

PAIRED_INCHES = 6.2
"""Width of a figure that stands beside a table."""

MOST_ROLES = 14

_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_ID = re.compile(r'(\bid="|\burl\(#|href="#)')


@dataclass(frozen=True)
class Plot:
    """A figure: its SVG, a sentence for those who cannot see it, and its width on the page in px."""

    svg: Markup
    description: str
    width: int
    kind: ClassVar[str] = "plot"


def plot(figure: Figure, identifier: str, description: str) -> Plot:
    """Turn a figure into inline SVG."""
    return from_svg(_svg(figure), identifier, description)


def from_svg(text: str, identifier: str, description: str) -> Plot:
    """Turn the text of an SVG file that Matplotlib wrote into inline SVG; Matplotlib escapes the text in it."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    head, _, rest = body.partition(">")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    if size is None:
        raise ValueError("not an SVG by Matplotlib")
    # Colours occur in attributes and declarations only; in text a name could look like one.
    rest = re.sub(r"<[^>]*>", lambda tag: _COLOUR.sub(_variable, _ID.sub(rf"\g<1>{identifier}-", tag[0])), rest)
    rest = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px var(--sans)", rest)
    rest = re.sub(r"font: (bold|700) ([\d.]+)px [^;\"]*", r"font: 700 \2px var(--sans)", rest)
    width, height = size[1], size[2]
    opening = f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">'
    return Plot(Markup(opening + re.sub(r"\n\s*", "\n", rest)), description, round(float(width) * 1.25))


def _variable(colour: re.Match[str]) -> str:
    return f"var({VARIABLES[colour[0].lower()]})"


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
    """Draw the figures."""
    bars = kernels_by_time(roles, "role", limit=MOST_ROLES, title=title, width=PAIRED_INCHES)
    try:
        strip = block_strip(cut, rank, PAIRED_INCHES, outliers, phase)
    except TraceError:
        return Pictures(_svg(bars), None)
    return Pictures(_svg(bars), _svg(strip))


def _svg(figure: Figure) -> str:
    return style.encoded(figure, "svg").decode()
