"""The forms in which a command shows what it computed: a table for people, --json, --csv, a plot.

@click.command()
@paths_argument
@plot_option
@form_options
def answer(paths: tuple[str, ...], plot: Path | None, form: Form, no_cache: bool) -> None:
    trace = open_one(paths, no_cache=no_cache)
    ...
    show_warnings(warnings_of(trace))
    show(
        form,
        document,
        csv=(csv_columns(Row), document.rows),
        render=lambda width: view.render(document, width),
        plot=(plot, lambda: figure_of(document)),
    )
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from traceanalyzer.cli.common import csv_option, emit_csv, emit_json, json_option, no_cache_option, refuse_both
from traceanalyzer.cli.plotting import save_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from traceanalyzer.declare import Part

Form = Literal["table", "json", "csv"]
Command = Callable[..., Any]


def forms_of(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command options; it receives --json and --csv among them as one ``form``.

    Both at once are refused before the command runs.
    """

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*, as_json: bool = False, as_csv: bool = False, **arguments: Any) -> Any:
            refuse_both(as_json, as_csv)
            form: Form = "json" if as_json else "csv" if as_csv else "table"
            return command(form=form, **arguments)

        made: Command = wrapped
        for option in reversed(options):
            made = option(made)
        return made

    return decorated


form_options = forms_of(json_option, csv_option, no_cache_option)
json_form = forms_of(json_option)


def show(
    form: Form,
    document: Any,
    *,
    render: Callable[[int], RenderableType],
    csv: tuple[Sequence[str], Iterable[Mapping[str, Any] | Part]] = ((), ()),
    plot: tuple[Path | None, Callable[[], Figure]] | None = None,
) -> None:
    """Draw a result where that is asked for, and print it on stdout in the form asked for.

    Args:
        form: as the user asked.
        document: what ``--json`` prints.
        render: makes the text for people, for a terminal of some width.
        csv: columns and rows that ``--csv`` prints.
        plot: the file that ``--plot`` names, if any, and what draws the figure.

    Raises:
        TraceError: the figure cannot be drawn or written.
    """
    if plot is not None and plot[0] is not None:
        save_plot(plot[1](), plot[0])
    if form == "json":
        emit_json(document)
    elif form == "csv":
        emit_csv(*csv)
    else:
        from traceanalyzer.show.terminal import console

        screen = console()
        screen.print(render(screen.width))
