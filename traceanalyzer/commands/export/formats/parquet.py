"""``traceanalyzer export parquet``: tables as Parquet, times in µs, one file per table.

Written into a directory; a single table also to one file whose name ends in .parquet.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.commands.export.file_each import write_each

if TYPE_CHECKING:
    from traceanalyzer.commands.export.tables import TableData


def parquet(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a Parquet file per table.

    Raises:
        TraceError: a file cannot be written.
    """
    return write_each(tables, target, ".parquet", _encoded)


def _encoded(one: TableData) -> bytes:
    out = io.BytesIO()
    one.frame().write_parquet(out)
    return out.getvalue()
