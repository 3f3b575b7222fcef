"""Triton's autotuner on disk: ``*.autotune.json``, written with ``TRITON_CACHE_AUTOTUNING=1`` or ``cache_results``.

    {"key": [...], "configs_timings": [[{"kwargs": {"BLOCK_M": 16}, "num_warps": 4, ...}, [p50, p20, p80]], ...]}

A timing is one number or three quantiles, in milliseconds; infinity marks a configuration that could not run. The key
is the kernel's own list of arguments, so which of them is m is not known.
"""

from __future__ import annotations

from typing import Any

from traceanalyzer.commands.tune.formats.point_collector import PointCollector, positive, scalars
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import TRITON_LAUNCH, TileConfig, Value, from_triton

NAME = "triton-autotune"
TITLE = "Triton's *.autotune.json"

_SUFFIX = ".autotune.json"
COULD_NOT_RUN = "could not run (the autotuner recorded no finite time)"


def recognises(source: SweepSource) -> bool:
    """Return whether the document holds configurations with timings."""
    return isinstance(source.document, dict) and "configs_timings" in source.document


def read(source: SweepSource, into: PointCollector) -> None:
    """Add every configuration; the median is the first of three quantiles.

    Raises:
        TraceError: the timings are not a list.
    """
    entries = source.document["configs_timings"]
    if not isinstance(entries, list):
        raise source.error("'configs_timings' is not a list")
    kernel = source.name.removesuffix(_SUFFIX) if source.name.endswith(_SUFFIX) else None
    shape = _shape(source.document.get("key"))
    for number, entry in enumerate(entries):
        config = _config(entry)
        if config is None:
            into.malformed(f"entry {number} is not [configuration, timing]")
            continue
        timing = entry[1][0] if isinstance(entry[1], list) and entry[1] else entry[1]
        time = positive(timing)
        reason = None if time is not None else COULD_NOT_RUN
        into.add(SweepPoint(kernel, None, None, config, shape=shape, reason=reason), [] if time is None else [time])


def _config(entry: Any) -> TileConfig | None:
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], dict):
        return None
    own = scalars(entry[0].get("kwargs", {}))
    launch = scalars({key: entry[0][key] for key in TRITON_LAUNCH if entry[0].get(key) is not None})
    return None if own is None or launch is None else from_triton({**own, **launch})


def _shape(key: Any) -> dict[str, Value]:
    """Return the key's parts under numbered names: which argument is which, the file does not say."""
    if not isinstance(key, list):
        return {}
    return {f"key_{i}": part if isinstance(part, int | float | str | None) else str(part) for i, part in enumerate(key)}
