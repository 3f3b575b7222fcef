"""Tables of the report: columns that know their kind, cells that know what they sort by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from traceanalyzer.names import short_name
from traceanalyzer.wording import bounded, cut_middle, visible

Kind = Literal["name", "text", "long", "time", "share", "count", "number"]

NUMERIC = frozenset({"time", "share", "count", "number"})
NAME_WIDTH = 64
TIGHT = 26
"""Characters up to which the cells of a column of text stay on one line."""

LONGEST_NAME = 1500
"""Characters of a kernel name that the page holds; longer ones lose their middle."""

Unit = tuple[float, str, int]
MICROSECONDS: Unit = (1e3, "µs", 1)
MILLISECONDS: Unit = (1e6, "ms", 3)
LONG_NS = 1e8
"""Time from which on a table is in ms. One unit a table, so that its figures can be compared at a glance."""


@dataclass(frozen=True)
class Spec:
    """A column to make.

    Attributes:
        title: heading, without unit.
        kind: ``time`` takes ns, ``share`` takes parts of 1; null is an empty cell everywhere.
        key: of the row, or a function of it.
        digits: decimals of a ``number``.
    """

    title: str
    kind: Kind
    key: str | Callable[[Mapping[str, Any]], Any]
    digits: int = 1

    def value(self, row: Mapping[str, Any]) -> Any:
        """Return the row's value."""
        return self.key(row) if callable(self.key) else row.get(self.key)


@dataclass(frozen=True)
class Column:
    """A heading; the class of its cells tells text from numbers."""

    title: str
    numeric: bool
    css: str


@dataclass(frozen=True)
class Cell:
    """What is shown, what it sorts by, and the whole of what is shown in short."""

    text: str
    sort: str
    full: str | None = None


@dataclass(frozen=True)
class Table:
    """A table ready to be written.

    Attributes:
        id: unique on the page.
        caption: says what a row is; read out by screen readers.
        columns, rows: the content.
        left_out: rows that were not taken over; ``0`` for none.
        filterable: whether a field to filter rows is offered.
        totals: a last row that sorting leaves where it is, or null.
    """

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    filterable: bool = False
    totals: tuple[Cell, ...] | None = None

    @property
    def shortened(self) -> bool:
        """Whether a name is shown in short, so that full ones can be asked for."""
        return any(cell.full is not None for row in self.rows for cell in row)


def build(
    identifier: str,
    caption: str,
    specs: Sequence[Spec],
    rows: Iterable[Mapping[str, Any]],
    *,
    limit: int = 0,
    filterable: bool = False,
    totals: Mapping[str, Any] | None = None,
    hide_empty: bool = True,
) -> Table:
    """Make a table.

    Args:
        identifier: unique on the page.
        caption: what a row is.
        specs: the columns.
        rows: the rows, in order.
        limit: rows taken; 0 takes all.
        filterable: offer a field to filter by.
        totals: the last row.
        hide_empty: leave out columns without any value.
    """
    listed = list(rows)
    shown = listed[:limit] if limit else listed
    values = [[spec.value(row) for row in shown] for spec in specs]
    kept = [i for i in range(len(specs)) if not hide_empty or not shown or any(v not in (None, "") for v in values[i])]
    times = [i for i in kept if specs[i].kind == "time"]
    unit = _unit([value for i in times for value in values[i] if value is not None])
    units = dict.fromkeys(times, unit)
    columns = tuple(
        Column(
            f"{specs[i].title},\u00a0{units[i][1]}" if i in units else specs[i].title,
            specs[i].kind in NUMERIC,
            _css(specs[i], values[i]),
        )
        for i in kept
    )
    body = tuple(tuple(_cell(specs[i], values[i][at], units.get(i)) for i in kept) for at in range(len(shown)))
    last = None
    if totals is not None:
        last = tuple(_cell(specs[i], specs[i].value(totals), units.get(i)) for i in kept)
    return Table(identifier, caption, columns, body, len(listed) - len(shown), filterable and len(body) > 5, last)


def _css(spec: Spec, values: Sequence[Any]) -> str:
    if spec.kind in NUMERIC:
        return "num"
    short = spec.kind == "text" and all(len(str(value)) <= TIGHT for value in values if value is not None)
    return "text tight" if short else spec.kind


def _unit(values: Sequence[float]) -> Unit:
    return MILLISECONDS if max((abs(value) for value in values), default=0.0) >= LONG_NS else MICROSECONDS


def _cell(spec: Spec, value: Any, unit: Unit | None) -> Cell:
    if value is None:
        return Cell("", "")
    if spec.kind == "name":
        return name_cell(str(value))
    if spec.kind in ("text", "long"):
        text = visible(str(value))
        return Cell(text, text.lower())
    return Cell(_number(spec, value, unit), repr(float(value)))


def _number(spec: Spec, value: float, unit: Unit | None) -> str:
    if unit is not None:
        return bounded(value / unit[0], unit[2])
    if spec.kind == "share":
        return f"{bounded(value * 100, 1)} %"
    if spec.kind == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return f"{value:,.{spec.digits}f}"


def name_cell(name: str) -> Cell:
    """A kernel's name: short to read, whole on request."""
    whole = cut_middle(visible(name), LONGEST_NAME)
    short = short_name(name, NAME_WIDTH)
    return Cell(short, whole.lower(), None if short == whole else whole)
