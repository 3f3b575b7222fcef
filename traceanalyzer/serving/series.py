"""Results as people read them: one curve per configuration, one row per load, every metric in the unit of its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceanalyzer.declare import csv_columns
from traceanalyzer.serving.comparison import mean_of
from traceanalyzer.serving.grouping import LOAD_SETTINGS, RunGroup, group, shown
from traceanalyzer.serving.metrics import sort_key
from traceanalyzer.serving.result import LoadResult
from traceanalyzer.serving.serving_result import ServingResult, Setting

SHOW_COLUMNS = (
    ("request_throughput", "req/s"),
    ("mean_e2el_ms", "latency"),
    ("p99_e2el_ms", "P99"),
    ("output_throughput", "tokens/s"),
    ("mean_ttft_ms", "TTFT"),
    ("p99_ttft_ms", "P99"),
    ("mean_tpot_ms", "TPOT"),
    ("p99_tpot_ms", "P99"),
)
"""Metrics in a table over loads, with their headings."""

HEADLINE = {
    "output_throughput": "tok/s",
    "mean_ttft_ms": "TTFT",
    "mean_tpot_ms": "TPOT",
    "mean_e2el_ms": "latency",
}
"""Metrics in a table of changes over several loads, with their headings; JSON and CSV have every metric."""

LONGEST_NAME = 2
"""Configurations that differ in more settings than this are named after their files; chosen, not fitted."""


@dataclass(frozen=True, eq=False)
class Series:
    """The runs of one configuration over loads.

    Attributes:
        name: its label, the settings that differ, or its file.
        points: one group of runs per load; several runs only if the files say that they are repetitions.
    """

    name: str
    points: tuple[RunGroup, ...]


def series(results: Sequence[ServingResult]) -> tuple[Series, ...]:
    """Return results by configuration: the same folder, label and settings other than the load.

    Only numbered runs of a sweep and lines of one file are repetitions; other files of the same load stay apart.
    """
    families: dict[tuple[object, ...], list[ServingResult]] = {}
    for result in results:
        families.setdefault(_identity(result), []).append(result)
    configurations: list[list[ServingResult]] = []
    for runs in families.values():
        by_file: dict[str, list[ServingResult]] = {}
        for run in runs:
            by_file.setdefault(str(Path(run.source).parent) if run.repeat else run.source, []).append(run)
        loads = [run.load for files in by_file.values() for run in {r.load: r for r in files}.values()]
        configurations += [runs] if len(set(loads)) == len(loads) else list(by_file.values())
    names = _names(configurations)
    return tuple(Series(name, tuple(group(runs))) for name, runs in zip(names, configurations, strict=True))


def _identity(result: ServingResult) -> tuple[object, ...]:
    folder = Path(result.source).parent
    # The folder of a sweep's runs is named after their settings; the sweep itself is the folder above.
    home = folder.parent if result.repeat else folder
    fixed = sorted((k, v) for k, v in result.settings.items() if k not in LOAD_SETTINGS)
    return (str(home), result.kind, result.label, tuple((k, str(v)) for k, v in fixed))


def _home(runs: Sequence[ServingResult]) -> Path:
    """Return the file of the runs, or the folder of the sweep or of their several files."""
    path = Path(runs[0].source)
    if runs[0].repeat:
        return path.parents[1]
    return path if len({run.source for run in runs}) == 1 else path.parent


def _names(configurations: Sequence[Sequence[ServingResult]]) -> list[str]:
    """Return names of configurations: label, else the settings that differ, else file."""
    varying = _varying([runs[0].settings for runs in configurations])
    names = []
    for runs in configurations:
        differing = ", ".join(f"{key} = {shown(runs[0].settings[key])}" for key in varying if key in runs[0].settings)
        names.append(runs[0].label or differing or _home(runs).name or runs[0].source)
    return [
        name if names.count(name) == 1 else f"{name} ({Path(runs[0].source).name})"
        for name, runs in zip(names, configurations, strict=True)
    ]


def _varying(settings: Sequence[Mapping[str, Setting]]) -> list[str]:
    """Return the settings that differ between configurations; none if they are too many for a name."""
    keys = {key for one in settings for key in one} - {*LOAD_SETTINGS, "burstiness"}
    varying = sorted(key for key in keys if len({one.get(key) for one in settings}) > 1)
    return varying if len(varying) <= LONGEST_NAME else []


def load_result(name: str, point: RunGroup) -> LoadResult:
    """Return the runs of one load as a row; ``name`` is that of the configuration."""
    keys = sorted({key for run in point.results for key in run.metrics}, key=sort_key)
    means = {key: mean for key in keys if (mean := mean_of(point, key)) is not None}
    return LoadResult(
        result=name,
        **point.load._asdict(),
        runs=len(point.results),
        completed=_total([run.completed for run in point.results]),
        failed=_total([run.failed for run in point.results]),
        settings=dict(point.results[0].settings),
        metrics={key: mean.mean for key, mean in means.items()},
        half_widths={key: mean.half_width for key, mean in means.items()},
        derived=sorted({key for run in point.results for key in run.derived}),
        sources=list(dict.fromkeys(run.source for run in point.results)),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def show_rows(listed: Sequence[Series]) -> list[dict[str, Any]]:
    """Return flat rows for CSV: one per load, every metric a column."""
    fixed = csv_columns(LoadResult)
    points = [load_result(one.name, point) for one in listed for point in one.points]
    return [{name: getattr(point, name) for name in fixed} | dict(point.metrics) for point in points]


def show_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of ``show_rows``: those that ``LoadResult`` declares, then every metric that occurs."""
    fixed = csv_columns(LoadResult)
    return [*fixed, *sorted({key for row in rows for key in row} - set(fixed), key=sort_key)]
