"""Published Inductor autotuning tables, collected as CSV.

source,gpu,dtype,M,N,K,bm,bn,bk,stages,warps,group_m,ms
"""

from __future__ import annotations

from traceanalyzer.commands.tune.formats.csv_tables import milliseconds, rows, rows_of
from traceanalyzer.commands.tune.formats.point_collector import PointCollector
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import INDUCTOR, from_columns

NAME = "inductor-csv"
TITLE = "a CSV table with the columns M, N, K, bm, bn, bk and ms"


def recognises(source: SweepSource) -> bool:
    """Return whether the heading has the shape, the tile and a time."""
    return {"M", "N", "K", "bm", "bn", "bk"} <= set(source.header) and bool({"ms", "us"} & set(source.header))


def read(source: SweepSource, into: PointCollector) -> None:
    """Add every row."""
    unit, scale = ("ms", 1.0) if "ms" in source.header else ("us", 1e-3)
    for line, cells in rows(source, into):
        size = [rows_of(cells.get(side)) for side in ("M", "N", "K")]
        config = from_columns(cells, INDUCTOR)
        if None in size or any(not isinstance(value, int) for value in config.values()):
            into.malformed("a shape or block that is not a positive whole number", line)
            continue
        point = SweepPoint(
            kernel="mm",
            m=size[0],
            concurrency=None,
            config=config,
            shape={"n": size[1], "k": size[2], "dtype": cells.get("dtype"), "source": cells.get("source")},
            device={"name": str(cells["gpu"])} if cells.get("gpu") else {},
        )
        into.add(point, milliseconds(cells.get(unit), scale), line)
