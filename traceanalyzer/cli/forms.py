"""The forms in which a command shows what it computed: a table for people, --json, --csv.

@click.command()
@paths_argument
@form_options
def answer(paths: tuple[str, ...], form: Form, no_cache: bool) -> None:
    trace = open_one(paths, no_cache=no_cache)
    ...
    show_warnings(warnings_of(trace))
    show(form, document, csv=(csv_columns(Row), document.rows), render=lambda width: view.render(document, width))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from traceanalyzer.cli.common import emit_csv, emit_json, refuse_both, table_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from traceanalyzer.declare import Part

Form = Literal["table", "json", "csv"]


def form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --json, --csv and --no-cache; it receives the first two as one ``form``.

    Both at once are refused before the command runs.
    """

    @functools.wraps(command)
    def wrapped(*, as_json: bool, as_csv: bool, **arguments: Any) -> Any:
        refuse_both(as_json, as_csv)
        form: Form = "json" if as_json else "csv" if as_csv else "table"
        return command(form=form, **arguments)

    return table_options(wrapped)


def show(
    form: Form,
    document: Any,
    *,
    csv: tuple[Sequence[str], Iterable[Mapping[str, Any] | Part]],
    render: Callable[[int], RenderableType],
) -> None:
    """Print a result on stdout in the form asked for.

    Args:
        form: as the user asked.
        document: what ``--json`` prints.
        csv: columns and rows that ``--csv`` prints.
        render: makes the text for people, for a terminal of some width.
    """
    if form == "json":
        emit_json(document)
    elif form == "csv":
        emit_csv(*csv)
    else:
        from traceanalyzer.show.terminal import console

        screen = console()
        screen.print(render(screen.width))
