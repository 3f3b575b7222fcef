"""kernel_tuner's cache files, as its benchmark hub publishes them, and the results files (T4) made from them.

    {"device_name": .., "kernel_name": .., "problem_size": .., "tune_params_keys": [..],
     "cache": {"16,32": {"bx": 16, "by": 32, "time": 1.2, "times": [..], ...}, ...}}
    {"results": [{"configuration": {..}, "invalidity": "correct", "times": {"runtimes": [..]},
                  "measurements": [{"name": "time", "value": 1.2, "unit": "ms"}]}, ...]}

Times are milliseconds. A configuration that failed has text for a time, or 1e20. A cache is left open, without its last
brackets, until the tuner ends.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from traceanalyzer.commands.tune.formats.point_collector import TO_MS, PointCollector, positive, scalars
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import TileConfig, Value

NAME = "kernel-tuner"
TITLE = "a kernel_tuner cache or results file, also as published by benchmark_hub"

FAILED_TIME_MS = 1e15
"""kernel_tuner writes 1e20 for a configuration that failed; anything above this is not a time."""

_CACHE = re.compile(r'"cache"\s*:\s*\{')
_HEAD = 200_000
"""Characters that are looked at in a file that is not whole JSON; the tuner's keys stand at its start. Chosen."""


def recognises(source: SweepSource) -> bool:
    """Return whether the file is a cache, closed or open, or a results file."""
    document = source.document
    if isinstance(document, dict):
        return ("cache" in document and "tune_params_keys" in document) or _is_results(document)
    head = source.text[:_HEAD]
    return '"tune_params_keys"' in head and _CACHE.search(head) is not None


def read(source: SweepSource, into: PointCollector) -> None:
    """Add every configuration of the file.

    Raises:
        TraceError: the file is torn elsewhere than at its end.
    """
    document = source.document
    if document is None:
        document = _closed(source)
        into.count("unfinished_file", "the tuner did not finish: the file's closing brackets are missing")
    if _is_results(document):
        for number, entry in enumerate(document["results"]):
            _result(entry, number, into)
        return
    if not isinstance(document["cache"], dict):
        raise source.error("'cache' is not an object")
    names = [name for name in document["tune_params_keys"] if isinstance(name, str)]
    kernel, device = document.get("kernel_name"), document.get("device_name")
    size = document.get("problem_size")
    shape: dict[str, Value] = {} if size is None else {"problem_size": json.dumps(size)}
    for key, entry in document["cache"].items():
        config = scalars({name: entry[name] for name in names if name in entry}) if isinstance(entry, dict) else None
        if not config:
            into.malformed(f"cache entry {key!r} holds no configuration")
            continue
        samples, reason = _timing(entry.get("times"), entry.get("time"), 1.0)
        point = SweepPoint(
            kernel=str(kernel) if kernel else None,
            m=None,
            concurrency=None,
            config=TileConfig(config),
            shape=shape,
            reason=reason,
            device={"name": str(device)} if device else {},
        )
        into.add(point, samples)


def _result(entry: Any, number: int, into: PointCollector) -> None:
    """Add one entry of a results file."""
    config = scalars(entry.get("configuration")) if isinstance(entry, dict) else None
    if not config:
        into.malformed(f"result {number} holds no configuration")
        return
    measured = [m for m in entry.get("measurements") or [] if isinstance(m, dict) and m.get("name") == "time"]
    verdict = entry.get("invalidity", "correct")
    times = entry.get("times")
    runtimes = times.get("runtimes") if isinstance(times, dict) else None
    samples: list[object] = []
    reason: str | None = str(verdict)
    if verdict == "correct" and not measured and not runtimes:
        into.malformed(f"result {number} has no measurement named 'time'")
        return
    if verdict == "correct":
        unit = TO_MS.get(str(measured[0].get("unit")).lower(), 1.0) if measured else 1.0
        samples, reason = _timing(runtimes, measured[0].get("value") if measured else None, unit)
    into.add(SweepPoint(None, None, None, TileConfig(config), reason=reason), samples)


def _timing(samples: Any, time: Any, scale: float) -> tuple[list[object], str | None]:
    """Return the samples in milliseconds, and why there are none."""
    if isinstance(time, str):
        return [], time
    if isinstance(time, int | float) and not isinstance(time, bool) and not time < FAILED_TIME_MS:
        return [], "failed (the tuner recorded no finite time)"
    if isinstance(samples, list) and samples:
        return list(samples), None
    value = positive(time)
    return ([value * scale] if value is not None else [math.nan]), None


def _is_results(document: Any) -> bool:
    entries = document.get("results") if isinstance(document, dict) else None
    return isinstance(entries, list) and any(isinstance(e, dict) and "configuration" in e for e in entries[:5])


def _closed(source: SweepSource) -> Any:
    """Return the document of a cache that was left open: cut after its last whole entry, and closed."""
    text = source.text.rstrip().rstrip(",")
    for candidate in (text + "}}", text[: text.rfind("},") + 1] + "}}"):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise source.error("is torn: not JSON, and not a kernel_tuner cache that was merely left open")
