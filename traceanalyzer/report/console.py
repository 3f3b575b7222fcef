"""The terminal: one console, tables in one style, names cut to the width that is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceanalyzer.names import short_name
from traceanalyzer.report.text import visible

NARROWEST_NAME = 20
DEFAULT_WIDTH = 100
NARROWEST = 40


def console() -> Console:
    """Return the console on stdout; where that is no terminal, it is plain and has the width of $COLUMNS or 100."""
    on_terminal = Console(highlight=False, markup=False, emoji=False)
    if on_terminal.is_terminal:
        return on_terminal
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isdigit() and int(asked) >= NARROWEST else DEFAULT_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    name_column: int | None,
    width: int,
    shorten: Callable[[str, int], str] = short_name,
) -> Table:
    """Build a table that fits the width; the text column is on the left, numbers are right-aligned.

    Args:
        columns: headings.
        rows: cells as text; untrusted text is shown literally.
        name_column: the column of kernel names, which are shortened to the space the others leave; null for none.
        width: of the terminal, in characters.
        shorten: how names lose length; the default knows kernel names.
    """
    body = [[visible(cell) for cell in row] for row in rows]
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    widths = [max([cell_len(heading), *(cell_len(row[i]) for row in body)]) for i, heading in enumerate(columns)]
    for i, heading in enumerate(columns):
        result.add_column(Text(heading), justify="left" if i == (name_column or 0) else "right", no_wrap=True)
    if name_column is not None:
        taken = sum(w for i, w in enumerate(widths) if i != name_column) + 2 * (len(columns) - 1) + 1
        space = max(NARROWEST_NAME, width - taken)
        for row in body:
            row[name_column] = shorten(row[name_column], space)
    for row in body:
        result.add_row(*(Text(cell) for cell in row))
    return result
