"""``traceanalyzer export csv``: tables as CSV, times in µs, one file per table.

Written into a directory; a single table also to one file whose name ends in .csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceanalyzer.commands.export.tables import TableData, write_each
from traceanalyzer.show.csv_text import to_csv


def csv(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a CSV file per table, UTF-8."""
    return write_each(tables, target, ".csv", lambda one: to_csv(one.columns, one.rows).encode("utf-8", "replace"))
