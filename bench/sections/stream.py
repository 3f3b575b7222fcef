"""Memory by size of a trace that is read from a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.inputs import DESCRIPTIONS
from bench.sections.text import context, number, table

RESULTS = "stream"
ORDER = 40
HEADER = (
    "through",
    "raw MB",
    "events",
    "kernels",
    "peak MB",
    "wall s",
    "CPU s",
    "store MB",
    "compared with the generator",
)


def render(document: dict[str, Any]) -> str:
    """Return peak memory by size, its growth, and what the first commands on the store take."""
    results = document["results"]
    runs = results["runs"]
    kind = DESCRIPTIONS[document["settings"]["kind"]]
    slopes = [f"{number(value, 2)} MB a GB {name}" for name, value in results["slope_mb_per_gb"].items()]
    workers = max(run["workers"] for run in runs)
    reading = (
        f"Events: {kind}, written again and again. `peak MB` is the largest sum of the resident sets of the reading "
        f"process and its {workers} worker{'' if workers == 1 else 's'}; the generator runs beside them on the "
        f"same cores and is not counted. Growth of the peak with the text, by least squares: {', '.join(slopes)}."
    )
    commands = [
        [number(run["raw_mb"]), each["command"], *(number(each[key]) for key in ("peak_mb", "wall_s", "cpu_s"))]
        for run in runs
        if not run["packed"]
        for each in run["commands"]
    ]
    return "\n\n".join(
        [
            context(document),
            reading,
            table(HEADER, [_line(run) for run in runs]),
            "The first commands on each store:",
            table(("raw MB", "command", "peak MB", "wall s", "CPU s"), commands),
        ]
    )


def _line(run: Mapping[str, Any]) -> list[str]:
    wrong = run["differences"]
    return [
        "gzip" if run["packed"] else "plain",
        number(run["raw_mb"]),
        f"{run['events']:,}",
        f"{run['kernels']:,}",
        number(run["peak_mb"]),
        number(run["wall_s"]),
        number(run["cpu_s"]),
        number(run["store_mb"]),
        "equal" if not wrong else f"DIFFERS: {'; '.join(wrong[:3])}",
    ]
