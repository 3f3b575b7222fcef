"""Writes the line format of hand-written sweeps: ``conc=1 bm=16 bn=32 bk=128 sk=1 median=... ms samples=[...]``."""

from __future__ import annotations

import json

from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.tile_keys import LOG, TILE, to_log


def point_line(point: SweepPoint) -> str | None:
    """Return a point as one line, parameters beyond the tile as ``nw=``, ``ns=``, ``gm=``; ``None`` without samples."""
    if not point.samples_ms:
        return None
    config = " ".join(f"{word}={value}" for word, value in to_log(point.config).items())
    samples = json.dumps(list(point.samples_ms))
    return f"conc={point.concurrency} {config} median={point.median_ms:.3f} ms samples={samples}"


def best_line(point: SweepPoint) -> str:
    """Return the ``BEST`` line that ends a batch size."""
    tile: dict[str, object] = {LOG[name]: point.config.get(name) for name in TILE}
    return f"BEST {point.concurrency} {tile | {'median_ms': point.median_ms}}"
