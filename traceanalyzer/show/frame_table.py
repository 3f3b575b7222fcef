"""Any frame as a table, and as rows for JSON and CSV: what an analysis without a page of its own is shown with."""

from __future__ import annotations

from typing import Any

import polars as pl
import polars.selectors as cs
from rich.console import Group
from rich.text import Text

from traceanalyzer.show.part_table import UNKNOWN, plain_value
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration, plural, us


def in_us(frame: pl.DataFrame) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return columns and rows for output: every ``_ns`` column as ``_us``, NaN and infinity as None."""
    finite = pl.when(cs.float().is_finite()).then(cs.float())
    clean = frame.with_columns(finite, (cs.categorical() | cs.enum()).cast(pl.String))
    names = {column: f"{column[:-3]}_us" if column.endswith("_ns") else column for column in clean.columns}
    rows = [
        {name: us(row[column]) if column.endswith("_ns") else row[column] for column, name in names.items()}
        for row in clean.iter_rows(named=True)
    ]
    return tuple(names.values()), rows


def render(frame: pl.DataFrame, limit: int, width: int) -> Group:
    """Return the first rows as a table that fits the width; the first text column is shortened, as kernel names are."""
    shown = frame.head(limit or frame.height)
    texts = [at for at, dtype in enumerate(shown.dtypes) if dtype in (pl.String, pl.Categorical, pl.Enum)]
    headings = [column.removesuffix("_ns").replace("_", " ") for column in shown.columns]
    rows = [[_cell(column, value) for column, value in row.items()] for row in shown.iter_rows(named=True)]
    parts: list[Any] = [table(headings, rows, name_column=texts[0] if texts else None, width=width)]
    if rest := frame.height - shown.height:
        parts.append(Text(f"  and {plural(rest, 'more row')} (--limit 0 shows all)"))
    return Group(*parts)


def _cell(column: str, value: Any) -> str:
    return duration(value) if column.endswith("_ns") else UNKNOWN if value is None else plain_value(value)
