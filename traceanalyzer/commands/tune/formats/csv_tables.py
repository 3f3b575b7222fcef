"""CSV files with one measurement per row: AITER's tuned tables, and published Inductor autotuning tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from traceanalyzer.commands.tune.formats.point_collector import PointCollector, number, positive
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import SIDES, Value
from traceanalyzer.names import parse


def rows(source: SweepSource, into: PointCollector) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yield line number and cells of every row that has as many cells as the heading; others are counted."""
    reader = csv.reader(io.StringIO(source.text.lstrip()))
    heading = [cell.strip() for cell in next(reader, [])]
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(heading):
            into.malformed(f"{len(cells)} cells under {len(heading)} headings", reader.line_num)
            continue
        yield reader.line_num, dict(zip(heading, map(number, cells), strict=True))


def rows_of(cell: Value) -> int | None:
    """Return a positive whole number as it is; ``None`` for everything else."""
    return cell if isinstance(cell, int) and cell > 0 else None


def milliseconds(cell: Value, scale: float) -> list[object]:
    """Return a cell's time in milliseconds as the list of samples; what is not a time stays as it is, to be counted."""
    time = positive(cell)
    return [cell if time is None else time * scale]


def tile_of(kernel: Value) -> dict[str, Value]:
    """Return the tile that a kernel's name says, as far as it does."""
    if not isinstance(kernel, str):
        return {}
    read = parse(kernel)
    sides = read.tile or (None, None, None)
    return {side: value for side, value in zip(SIDES, sides, strict=True) if value is not None}
