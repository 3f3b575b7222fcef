"""``traceanalyzer export xlsx``: tables as one Excel workbook, times in µs, one sheet per table.

Needs XlsxWriter: pip install 'traceanalyzer[xlsx]'.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from traceanalyzer.commands.export.tables import TableData
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError

SHEET_ROWS = 1_048_575
"""Rows below the header that a worksheet can hold."""


def xlsx(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write one workbook with a sheet per table; text is text, whatever it looks like.

    Raises:
        TraceError: XlsxWriter is not installed, a table is too long for a sheet, or the file cannot be written.
    """
    try:
        xlsxwriter = import_module("xlsxwriter")
    except ImportError:
        raise TraceError(str(target), "writing .xlsx needs XlsxWriter: pip install 'traceanalyzer[xlsx]'") from None
    out = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    with xlsxwriter.Workbook(out, options) as book:
        heading = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        number = book.add_format({"num_format": "#,##0.0##"})
        for one in tables:
            if len(one.rows) > SHEET_ROWS:
                raise TraceError(str(target), f"{len(one.rows):,} rows of {one.name} do not fit a sheet; use parquet")
            _sheet(book.add_worksheet(one.name), one, heading, number)
    write_whole(target, out.getvalue())
    return [target]


def _sheet(sheet: Any, one: TableData, heading: Any, number: Any) -> None:
    sheet.freeze_panes(1, 0)
    for at, column in enumerate(one.columns):
        sheet.write_string(0, at, column, heading)
        longest = max((len(str(row.get(column) or "")) for row in one.rows), default=0)
        sheet.set_column(at, at, min(max(len(column), longest, 6) + 1, 60))
    for line, row in enumerate(one.rows, start=1):
        for at, column in enumerate(one.columns):
            value = row.get(column)
            if isinstance(value, bool):
                sheet.write_boolean(line, at, value)
            elif isinstance(value, int | float):
                sheet.write_number(line, at, value, number if isinstance(value, float) else None)
            elif value is not None:
                sheet.write_string(line, at, _cell_text(value))
    if one.rows:
        sheet.autofilter(0, 0, len(one.rows), len(one.columns) - 1)


def _cell_text(value: Any) -> str:
    """Text that XML can hold, no longer than a cell can be."""
    text = str(value).encode("utf-8", "replace").decode()
    return "".join(c if c in "\t\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:32_000]
