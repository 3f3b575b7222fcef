"""``traceanalyzer export parquet``: tables as Parquet, times in µs, one file per table.

Written into a directory; a single table also to one file whose name ends in .parquet.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from traceanalyzer.commands.export.tables import TableData, write_each


def parquet(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a Parquet file per table."""
    return write_each(tables, target, ".parquet", _encoded)


def _encoded(one: TableData) -> bytes:
    out = io.BytesIO()
    one.frame().write_parquet(out)
    return out.getvalue()
