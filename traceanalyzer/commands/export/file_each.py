"""Every table to a file of its own, or one table to one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError

if TYPE_CHECKING:
    from traceanalyzer.commands.export.tables import TableData


def write_each(
    tables: Sequence[TableData], target: Path, suffix: str, encoded: Callable[[TableData], bytes]
) -> list[Path]:
    """Write every table to a file of its name in a directory; a single one to ``target`` itself if its suffix fits.

    Raises:
        TraceError: several tables are to go to one file, or a file cannot be written.
    """
    if target.suffix.lower() == suffix:
        if len(tables) != 1:
            raise TraceError(str(target), f"{len(tables)} tables do not fit one file; name a directory, or one --table")
        write_whole(target, encoded(tables[0]))
        return [target]
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(str(target), f"cannot be written: {error.strerror or error}") from error
    written = []
    for one in tables:
        path = target / f"{one.name}{suffix}"
        write_whole(path, encoded(one))
        written.append(path)
    return written
