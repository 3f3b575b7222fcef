"""``traceanalyzer export csv``: tables as CSV, times in µs, one file per table.

Written into a directory; a single table also to one file whose name ends in .csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.commands.export.file_each import write_each
from traceanalyzer.show.csv_text import to_csv

if TYPE_CHECKING:
    from traceanalyzer.commands.export.tables import TableData


def csv(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a CSV file per table, UTF-8.

    Raises:
        TraceError: a file cannot be written.
    """
    return write_each(tables, target, ".csv", lambda one: to_csv(one.columns, one.rows).encode("utf-8", "replace"))
