"""Files that hold measurements, of this project and of others, read into one kind of sweep.

A format is a module with ``NAME``, ``TITLE``, ``recognises(source)`` and ``read(source, into)``; it is added to
``FOREIGN``. Formats are asked in that order, the most particular first.
"""

from __future__ import annotations

from os import PathLike, fspath
from types import ModuleType

from traceanalyzer.commands.tune.formats import (
    aiter_csv,
    inductor_csv,
    kernel_tuner,
    seed_log,
    sweep,
    triton_autotune,
    vllm_moe_files,
)
from traceanalyzer.commands.tune.formats.point_collector import PointCollector
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource, open_source
from traceanalyzer.problems import TraceError, TraceWarning

FOREIGN: tuple[ModuleType, ...] = (triton_autotune, kernel_tuner, vllm_moe_files, aiter_csv, inductor_csv, seed_log)
NAMES = (sweep.NAME, *(module.NAME for module in FOREIGN))


def read_sweep(path: str | PathLike[str], top_k: int | None = None, format_name: str | None = None) -> Sweep:
    """Read measurements from a file of any known format, gzip or plain.

    Args:
        path: the file.
        top_k: experts per token; gives m = concurrency x top_k where a file knows the concurrency only.
        format_name: one of ``NAMES``, for a file that no format recognises; ``None`` asks the file.

    Raises:
        TraceError: the file cannot be read, is of no known format, or holds no usable point.
    """
    source = open_source(fspath(path), top_k)
    if format_name == sweep.NAME or (format_name is None and sweep.recognises(source)):
        return _checked(source, sweep.NAME, *sweep.read(source))
    module = _format(source, format_name)
    collector = PointCollector()
    module.read(source, collector)
    return _checked(source, module.NAME, collector.points, collector.warnings(source.path))


def _format(source: SweepSource, name: str | None) -> ModuleType:
    for module in FOREIGN:
        if name == module.NAME or (name is None and module.recognises(source)):
            return module
    known = "; ".join(module.TITLE for module in (sweep, *FOREIGN))
    raise source.error(f"is not a sweep of a known kind (known: {known})")


def _checked(
    source: SweepSource, name: str, points: tuple[SweepPoint, ...], warnings: tuple[TraceWarning, ...]
) -> Sweep:
    if not points:
        reason = f": {warnings[0].message}" if warnings else ""
        where = f" (line {warnings[0].line})" if warnings and warnings[0].line else ""
        raise TraceError(source.path, f"holds no usable measurement{reason}{where}")
    return Sweep(points, warnings, source.path, name)
