"""The terminal: one console, tables in one style, names cut to the width that is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Literal, cast

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceanalyzer.names import short_name
from traceanalyzer.wording import visible

NARROWEST_NAME = 20
DEFAULT_WIDTH = 100
NARROWEST = 40
"""Characters of a shortened name, of lines without a terminal, and of the narrowest $COLUMNS heeded; chosen."""


def console() -> Console:
    """Return the console on stdout; where that is not a terminal, it is plain and has the width of $COLUMNS or 100."""
    on_terminal = _Screen(highlight=False, markup=False, emoji=False)
    if on_terminal.is_terminal:
        return on_terminal
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isdigit() and int(asked) >= NARROWEST else DEFAULT_WIDTH
    return _Screen(highlight=False, markup=False, emoji=False, width=width, file=cast("IO[str]", _Trimmed()))


class _Screen(Console):
    """A console that leaves a closed pipe to ``main``, which ends quietly; Rich would exit with status 1."""

    def on_broken_pipe(self) -> None:
        """Let the error through."""
        raise BrokenPipeError


class _Trimmed:
    """Standard output whose lines end without blanks: Rich fills lines up, which does not belong in a pipe."""

    # Whatever stdout has: Rich keeps its signs, and ``plain`` replaces those that stdout lacks.
    encoding = "utf-8"

    def __init__(self) -> None:
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        sys.stdout.write("".join(f"{line.rstrip(' ')}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        if self._line:
            sys.stdout.write(self._line)
            self._line = ""
        sys.stdout.flush()

    def isatty(self) -> bool:
        return False


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    name_column: int | None,
    width: int,
    shorten: Callable[[str, int], str] = short_name,
    spare: Sequence[int] = (),
) -> Table:
    """Build a table that fits the width; the text column is on the left, numbers are right-aligned.

    Args:
        rows: cells as text; untrusted text is shown literally.
        name_column: the column of kernel names, which are shortened to the space the others leave; None for none.
        shorten: how names lose length; the default knows kernel names.
        spare: columns, by index, that a narrow terminal does without, the first to go first. A cell that still does
            not fit is folded onto the next line: a figure never loses digits.
    """
    body = [[visible(cell) for cell in row] for row in rows]
    widths = [max([cell_len(heading), *(cell_len(row[i]) for row in body)]) for i, heading in enumerate(columns)]
    if name_column is not None:
        widths[name_column] = min(widths[name_column], NARROWEST_NAME)
    kept = list(range(len(columns)))
    for column in spare:
        if _taken(widths, kept) <= width:
            break
        kept.remove(column)
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for i in kept:
        justify: Literal["left", "right"] = "left" if i == (name_column or 0) else "right"
        result.add_column(Text(columns[i]), justify=justify, overflow="fold")
    if name_column is not None:
        space = width - _taken(widths, kept) + widths[name_column]
        for row in body:
            row[name_column] = shorten(row[name_column], max(NARROWEST_NAME, space))
    for row in body:
        result.add_row(*(Text(row[i]) for i in kept))
    return result


def _taken(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[i] for i in kept) + 2 * (len(kept) - 1) + 1
