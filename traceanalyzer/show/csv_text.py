"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from traceanalyzer.declare import Part

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Part]) -> str:
    """Return rows as CSV (RFC 4180, header first). ``None`` is an empty cell.

    A text cell that a spreadsheet would run as a formula gets a leading apostrophe; numbers are written as they are.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        get = row.get if isinstance(row, Mapping) else partial(getattr, row)
        writer.writerow([_cell(get(column)) for column in columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value
