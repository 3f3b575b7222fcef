"""The one look of all plots: colours, sizes, text, and how a figure becomes a file."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.wording import cut_middle, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

FORMATS = (".png", ".svg", ".pdf")

INK = "#1d232b"
MUTED = "#566070"
GRID = "#d5dae1"
PAPER = "#ffffff"

BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#aa3377"
ORANGE = "#e69f00"
SKY = "#56b4e9"
GREY = "#8d96a3"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
"""Okabe and Ito's colours without yellow and black; their pink, which looks grey without green cones, is darker."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
"""Tell curves apart where colour does not."""

BOUNDS = {
    "memory": (BLUE, "o"),
    "compute": (VERMILION, "s"),
    "latency": (GREY, "^"),
    "communication": (PURPLE, "P"),
    "implausible": (INK, "X"),
}
"""What limits a kernel -> colour and marker."""

ROLE_GROUPS: dict[str, tuple[str, ...]] = {
    "attention": ("qkv_proj", "rope", "kv_write", "attention", "o_proj"),
    "feed-forward": (
        *("gate_up", "down", "activation", "router", "moe_routing"),
        *("moe_gate_up", "moe_down", "moe_combine"),
    ),
    "communication": ("communication",),
    "outside of blocks": ("embedding", "lm_head", "sampler"),
    "norm, copy, other": ("norm", "quantize", "copy", "other"),
}
"""Roles that share a colour, in the order in which they are stacked."""

GROUP_COLOURS = dict(zip(ROLE_GROUPS, (BLUE, VERMILION, PURPLE, SKY, GREY), strict=True))
GROUP_HATCHES = dict(zip(ROLE_GROUPS, ("", "", "///", "", ""), strict=True))
_GROUP_OF = {role: group for group, roles in ROLE_GROUPS.items() for role in roles}

FONT = 13.0
SMALL = 11.5
DPI = 150
WIDTH = 7.6
"""Inches; half of it on a page still has letters of 6 points."""

TITLE_SHARE = 0.84
"""Share of a figure's width that a title may take: it begins above the axes, at the left of their labels."""

_RC: dict[Any, Any] = {
    "font.size": FONT,
    "font.family": "DejaVu Sans",
    "axes.titlesize": FONT + 1,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titlepad": 10.0,
    "axes.labelcolor": INK,
    "axes.labelsize": FONT,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.9,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL + 0.5,
    "ytick.labelsize": SMALL + 0.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": SMALL + 0.5,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "traceanalyzer",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the common style; names in a script that the font lacks are not a reason to warn."""
    from matplotlib import rc_context

    with rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure that no window or global state knows of; sizes in inches. Call within ``styled``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def group_of(role: str | None) -> str:
    """Name the group of roles whose colour a role has."""
    return _GROUP_OF.get(role or "other", "norm, copy, other")


def look_of(role: str | None) -> tuple[str, str]:
    """Return the colour and hatch of a role's group."""
    group = group_of(role)
    return GROUP_COLOURS[group], GROUP_HATCHES[group]


def label(text: str, length: int) -> str:
    """Untrusted text as a label: what cannot be printed written out, no longer than ``length``."""
    shown = visible(text)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def fit(text: Text, pixels: float) -> None:
    """Cut the middle of a text that is drawn wider than it may be."""
    shown = text.get_text()
    width = text.get_window_extent().width
    if width > pixels:
        text.set_text(cut_middle(shown, max(int(len(shown) * pixels / width) - 1, 8)))


def title_over(axes: Axes, title: str) -> None:
    """Write a title, on as many lines as the width of the figure asks for."""
    written = axes.set_title(title)
    share = written.get_window_extent().width / (TITLE_SHARE * axes.figure.bbox.width)
    written.set_text("\n".join(wrap(title, max(int(len(title) / max(share, 1.0)), 1))))


def time_unit(largest_ns: float) -> tuple[float, str]:
    """Size in ns and name of the unit for an axis of times up to ``largest_ns``."""
    return next(((size, unit) for size, unit in ((1e9, "s"), (1e6, "ms")) if largest_ns >= 2 * size), (1e3, "µs"))


def only_x_grid(axes: Axes) -> None:
    """Leave of the frame what a horizontal bar chart needs."""
    axes.grid(axis="x")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the suffix of the path; nothing remains where that fails.

    Raises:
        TraceError: the suffix is another one, or the file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise TraceError(str(path), f"a plot is written as {', '.join(FORMATS)}")
    write_whole(path, encoded(figure, path.suffix.lower().lstrip(".")))


def encoded(figure: Figure, form: str) -> bytes:
    """Return a figure as the bytes of a png, svg or pdf file, the same ones for the same figure."""
    out = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with styled():
        arrange(figure)
        # Arranged once: with any engine left, even one that does nothing, saving draws everything twice.
        figure.set_layout_engine(None)
        figure.savefig(out, format=form, metadata=metadata)
    return out.getvalue()


def arrange(figure: Figure) -> None:
    """Give the parts of a figure their places, as drawing it would; call within ``styled``."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
