"""How time grows with the size of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.inputs import DESCRIPTIONS
from bench.plot import Line, growth
from bench.routes import ROUTES
from bench.sections.text import context, number, table
from bench.summary import exponent, spread

RESULTS = "loading"
ORDER = 20
FROM_MB = 50
"""Below, fixed costs (starting Python, importing) are a large part of the time."""

IMAGE = "growth.svg"


def render(document: dict[str, Any]) -> str:
    """Return the exponents of every route."""
    parts = [
        f"![Wall time by size of the trace, for every route](images/{IMAGE})",
        context(document),
        f"Exponent b of time = a · size^b, by least squares on the logarithms of the medians: over sizes from "
        f"{FROM_MB} MB on, and over all. 1 is linear. Fixed costs pull the exponent over all sizes below 1.",
    ]
    for kind in _kinds(document):
        rows = [_line(route, points) for route, points in _points(document, kind).items() if len(points) > 1]
        if rows:
            parts.append(f"**{_upper(DESCRIPTIONS[kind])}**")
            parts.append(table(("route", "sizes, MB", f"b from {FROM_MB} MB", "b over all"), rows))
    return "\n\n".join(parts)


def images(document: dict[str, Any]) -> dict[str, bytes]:
    """Return the plot of the kind with most sizes."""
    kind = max(_kinds(document), key=lambda one: max(len(p) for p in _points(document, one).values()), default=None)
    if kind is None:
        return {}
    lines = [Line(ROUTES[route].title, points) for route, points in _points(document, kind).items() if points]
    return {IMAGE: growth(lines, f"From the .json.gz to the answer: {DESCRIPTIONS[kind].partition(',')[0]}")}


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _kinds(document: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(file["kind"] for file in document["results"]["inputs"]))


def _points(document: Mapping[str, Any], kind: str) -> dict[str, list[tuple[float, float]]]:
    """Return (raw MB, median wall s) of every route, smallest first."""
    sizes = {file["size_mb"]: file["raw_mb"] for file in document["results"]["inputs"] if file["kind"] == kind}
    found: dict[str, list[tuple[float, float]]] = {}
    for row in document["results"]["rows"]:
        if row["kind"] == kind:
            points = found.setdefault(row["route"], [])
            if row["runs"]:
                points.append((sizes[row["size_mb"]], spread([run["wall_s"] for run in row["runs"]])["median"]))
    return {route: sorted(points) for route, points in found.items()}


def _line(route: str, points: list[tuple[float, float]]) -> list[str]:
    large = [point for point in points if point[0] >= FROM_MB * 0.9]
    return [
        ROUTES[route].title,
        ", ".join(number(size) for size, _ in points),
        _exponent(large),
        _exponent(points),
    ]


def _exponent(points: list[tuple[float, float]]) -> str:
    found = exponent([size for size, _ in points], [time for _, time in points])
    return "–" if found is None else f"{found:.2f}"
