"""The option ``--plot FILE`` of commands that draw what they show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import tell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")


class PlotFile(click.ParamType[Path]):
    """A path whose ending is one of the formats that a plot can be written in."""

    name = "file"

    def __init__(self, formats: tuple[str, ...] = FORMATS) -> None:
        self.formats = formats

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Refuse other kinds of file before any work is done."""
        path = Path(str(value))
        if path.suffix.lower() not in self.formats:
            ending = path.suffix or "a file without ending"
            raise click.UsageError(f"--plot writes {', '.join(self.formats)}, not {ending}", ctx)
        return path


plot_option = click.option("--plot", type=PlotFile(), help="Also draw it into this .png, .svg or .pdf file.")


def save_plot(figure: Figure, path: Path) -> None:
    """Write a plot and say so.

    Raises:
        TraceError: it cannot be written.
    """
    from traceanalyzer.report.plots import save

    save(figure, path)
    tell(f"wrote {path}")
