"""Results in the order people read them: one row per load, and one curve per configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.serving.grouping import LOAD_SETTINGS, RunGroup, group, shown
from traceanalyzer.serving.serving_result import ServingResult, Setting

# Configurations that differ in more settings than this are named after their files.
LONGEST_NAME = 2


@dataclass(frozen=True, eq=False)
class Series:
    """The runs of one configuration over loads.

    Attributes:
        name: what sets it apart: label, settings that differ, or file.
        points: one group of runs per load; several runs only where the files say that they are repetitions.
    """

    name: str
    points: tuple[RunGroup, ...]


def series(results: Sequence[ServingResult]) -> tuple[Series, ...]:
    """Sort results into configurations: same folder, label and settings but for the load.

    Files are taken for repetitions of each other only where they are the numbered runs of a sweep or the lines of one
    file; other files of the same load are kept apart.
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
    """The file of the runs, or the folder of the sweep or of the several files that they fill."""
    path = Path(runs[0].source)
    if runs[0].repeat:
        return path.parents[1]
    return path if len({run.source for run in runs}) == 1 else path.parent


def _names(configurations: Sequence[Sequence[ServingResult]]) -> list[str]:
    """Name each configuration by its label, else the settings that differ, else its file."""
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
    """Return the settings that tell configurations apart; none where they are too many for a name."""
    keys = {key for one in settings for key in one} - {*LOAD_SETTINGS, "burstiness"}
    varying = sorted(key for key in keys if len({one.get(key) for one in settings}) > 1)
    return varying if len(varying) <= LONGEST_NAME else []
