"""Tables of the report: columns that know their kind, cells that know what they sort by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
"""A table with a time this long is in ms; chosen. One unit per table, so that figures compare at a glance."""


@dataclass(frozen=True)
class Spec:
    """A column to make.

    Attributes:
        title: heading, without unit.
        kind: ``time`` takes ns, ``share`` takes parts of 1; an unknown value is an empty cell.
        key: of a row that is a mapping, attribute of any other, or a function of the row; times of a key that ends in
            ``_us`` are taken as µs.
        digits: decimals of a ``number``.
    """

    title: str
    kind: Kind
    key: str | Callable[[Any], Any]
    digits: int = 1

    def value(self, row: Any) -> Any:
        """Return the row's value."""
        if callable(self.key):
            return self.key(row)
        value = row.get(self.key) if isinstance(row, Mapping) else getattr(row, self.key)
        return value * 1000 if value is not None and self.key.endswith("_us") else value


@dataclass(frozen=True)
class ColumnHeading:
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
        totals: a last row that sorting leaves where it is, or None.
    """

    id: str
    caption: str
    columns: tuple[ColumnHeading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    filterable: bool = False
    totals: tuple[Cell, ...] | None = None
    kind: ClassVar[str] = "table"

    @property
    def shortened(self) -> bool:
        """Whether a name is shown in short, so that full ones can be asked for."""
        return any(cell.full is not None for row in self.rows for cell in row)


def table(
    identifier: str,
    caption: str,
    specs: Sequence[Spec],
    rows: Iterable[Any],
    *,
    limit: int = 0,
    filterable: bool = False,
    totals: Mapping[str, Any] | None = None,
) -> Table | None:
    """Make a table of the first rows (``limit`` 0: of all), without columns that hold no value; None of no rows."""
    listed = list(rows)
    if not listed:
        return None
    shown = listed[: limit or None]
    every = [(spec, [spec.value(row) for row in shown]) for spec in specs]
    kept = [(spec, values) for spec, values in every if any(value not in (None, "") for value in values)]
    unit = _unit(kept)
    body = tuple(zip(*([_cell(spec, value, unit) for value in values] for spec, values in kept), strict=True))
    return Table(
        id=identifier,
        caption=caption,
        columns=tuple(_heading(spec, values, unit) for spec, values in kept),
        rows=body,
        left_out=len(listed) - len(shown),
        filterable=filterable and len(body) > 5,
        totals=None if totals is None else tuple(_cell(spec, spec.value(totals), unit) for spec, _ in kept),
    )


def _unit(columns: Sequence[tuple[Spec, list[Any]]]) -> Unit:
    times = [abs(value) for spec, values in columns if spec.kind == "time" for value in values if value is not None]
    return MILLISECONDS if max(times, default=0.0) >= LONG_NS else MICROSECONDS


def _heading(spec: Spec, values: Sequence[Any], unit: Unit) -> ColumnHeading:
    """Return the heading, with the unit where the column is of times."""
    title = f"{spec.title},\u00a0{unit[1]}" if spec.kind == "time" else spec.title
    if spec.kind in NUMERIC:
        return ColumnHeading(title, numeric=True, css="num")
    short = spec.kind == "text" and all(len(str(value)) <= TIGHT for value in values if value is not None)
    return ColumnHeading(title, numeric=False, css="text tight" if short else spec.kind)


def _cell(spec: Spec, value: Any, unit: Unit) -> Cell:
    if value is None:
        return Cell("", "")
    if spec.kind == "name":
        return name_cell(str(value))
    if spec.kind in ("text", "long"):
        text = visible(str(value))
        return Cell(text, text.lower())
    return Cell(_number(spec, value, unit), repr(float(value)))


def _number(spec: Spec, value: float, unit: Unit) -> str:
    if spec.kind == "time":
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
