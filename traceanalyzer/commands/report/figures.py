"""Figures as inline SVG that takes the colours of the page, so that it is right in dark mode and in print too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from markupsafe import Markup

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
    """Turn a figure into inline SVG.

    Args:
        figure: the figure.
        identifier: prefix of all ids in it, unique on the page.
        description: what it shows, in words.
    """
    return from_svg(style.encoded(figure, "svg").decode(), identifier, description)


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
