"""The option ``--plot FILE`` of commands that draw what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceanalyzer.cli.common import tell
from traceanalyzer.show.plots.style import FORMATS, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    PathType = click.ParamType[Path]
else:
    # Only later versions of click can be asked which type a parameter has.
    PathType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])


class PlotFile(PathType):
    """A path whose ending is one of the formats that a plot can be written in."""

    name = "file"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Refuse other kinds of file before any work is done."""
        path = Path(str(value))
        if path.suffix.lower() not in FORMATS:
            ending = path.suffix or "a file without ending"
            raise click.UsageError(f"--plot writes {', '.join(FORMATS)}, not {ending}", ctx)
        return path


def plot_option_of(what: str) -> Callable[[F], F]:
    """Give a command ``--plot FILE``; ``what`` says what is drawn, as the start of a sentence."""
    return click.option("--plot", type=PlotFile(), help=f"{what} into this .png, .svg or .pdf file.")


plot_option = plot_option_of("Also draw it")


def save_plot(figure: Figure, path: Path) -> None:
    """Write a plot and say so.

    Raises:
        TraceError: it cannot be written.
    """
    save(figure, path)
    tell(f"wrote {path}")
