"""Terminal tables of declared parts: headings and the form of every cell follow from the declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from traceanalyzer.declare import Column, Part, columns
from traceanalyzer.names import short_name
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration, percent

UNKNOWN = "n/a"
NS = {"ns": 1, "µs": 1e3, "ms": 1e6}


def cell(column: Column, value: Any, unknown: str = UNKNOWN) -> str:
    """Return a value as people read it: times in the unit that fits, shares in percent, counts with separators."""
    if value is None:
        return unknown
    if column.unit in NS:
        return duration(value * NS[column.unit])
    if column.unit.startswith("share"):
        return percent(value)
    return plain_value(value)


def plain_value(value: Any) -> str:
    """Return a value without unit as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def part_table(
    rows: Sequence[Part],
    names: Sequence[str],
    *,
    width: int,
    spare: Sequence[str] = (),
    shorten: Callable[[str, int], str] = short_name,
    headings: Mapping[str, str] | None = None,
    unknown: Mapping[str, str] | None = None,
) -> Table:
    """Return rows as a table of some of their fields; the first is the name, on the left, and shortened to fit.

    Args:
        spare: fields that a narrow terminal does without, the first to go first.
        shorten: how names lose length; the default knows kernel names.
        headings: other headings than those declared, by field.
        unknown: what stands for an unknown value, by field; ``n/a`` elsewhere.
    """
    declared = {column.name: column for column in columns(type(rows[0]))}
    shown = [declared[name] for name in names]
    cells = [
        [cell(one, getattr(row, one.name), (unknown or {}).get(one.name, UNKNOWN)) for one in shown] for row in rows
    ]
    titles = [(headings or {}).get(one.name, one.heading) for one in shown]
    left = [names.index(name) for name in spare if name in names]
    return table(titles, cells, name_column=0, width=width, shorten=shorten, spare=left)
