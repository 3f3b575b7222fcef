"""Writes the line format of hand-written sweeps: ``conc=1 bm=16 bn=32 bk=128 sk=1 median=... ms samples=[...]``."""

from __future__ import annotations

import json

from traceanalyzer.commands.tune.formats.sweep import Point

SHORT = {"bm": "block_m", "bn": "block_n", "bk": "block_k", "sk": "split_k"}
OTHER_SHORT = {"nw": "num_warps", "ns": "num_stages", "gm": "group_m"}


def point_line(point: Point) -> str | None:
    """Return a point as one line, parameters beyond the tile as ``nw=``, ``ns=``, ``gm=``; null without samples."""
    if not point.samples_ms:
        return None
    tile = " ".join(f"{short}={point.config.get(name)}" for short, name in SHORT.items())
    rest = "".join(f" {s}={point.config[n]}" for s, n in OTHER_SHORT.items() if point.config.get(n) is not None)
    head = f"conc={point.concurrency} {tile}{rest}"
    return f"{head} median={point.median_ms:.3f} ms samples={json.dumps(list(point.samples_ms))}"


def best_line(point: Point) -> str:
    """Return the ``BEST`` line that ends a batch size."""
    tile: dict[str, object] = {short: point.config.get(name) for short, name in SHORT.items()}
    return f"BEST {point.concurrency} {tile | {'median_ms': point.median_ms}}"
