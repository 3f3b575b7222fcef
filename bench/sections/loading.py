"""From the file to the answer: every route on every input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.disturbance import SHARE
from bench.inputs import DESCRIPTIONS
from bench.routes import OURS, ROUTES
from bench.sections.text import context, number, table, within
from bench.summary import ratios, spread

RESULTS = "loading"
ORDER = 10
HEADER = ("route", "wall s", "CPU s", "peak MB", "MB/s", "times ours", "answer")


def render(document: dict[str, Any]) -> str:
    """Return a table for each input, and what must be known to read it."""
    results = document["results"]
    parts = [context(document), READING]
    for file in results["inputs"]:
        rows = [row for row in results["rows"] if _of(row, file)]
        parts.append(f"**{_title(file)}** ({_plan(_usual(rows))} unless the table says so)")
        parts.append(table(HEADER, [_line(row, rows, _usual(rows), file["raw_mb"]) for row in rows]))
    parts.append(_others(results["rows"]))
    return "\n\n".join(parts)


READING = (
    "Medians, in brackets the smallest and the largest of the runs. `times ours` is the wall time in relation to "
    "traceanalyzer's in the same repetition: above 1 the route is slower. `peak MB` is the largest sum of the resident "
    "sets of a route's processes. `MB/s` is raw JSON by wall time."
)


def _title(file: Mapping[str, Any]) -> str:
    events = f", {file['device_events']:,} device events" if file["device_events"] is not None else ""
    return (
        f"{number(file['raw_mb'])} MB raw ({number(file['file_mb'])} MB .json.gz){events}; {DESCRIPTIONS[file['kind']]}"
    )


def _of(row: Mapping[str, Any], file: Mapping[str, Any]) -> bool:
    return (row["kind"], row["size_mb"]) == (file["kind"], file["size_mb"])


def _usual(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many runs and uncounted runs before most routes had."""
    counts = Counter((len(row["runs"]), row["warmups"]) for row in rows if row["runs"])
    return counts.most_common(1)[0][0] if counts else (0, 0)


def _plan(runs_and_warmups: tuple[int, int]) -> str:
    runs, warmups = runs_and_warmups
    return f"{runs} {'run' if runs == 1 else 'runs'} after {warmups} uncounted"


def _line(
    row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], usual: tuple[int, int], raw_mb: float
) -> list[str]:
    title = ROUTES[row["route"]].title
    if not row["runs"]:
        return [title, "", "", "", "", "", row["skipped"] or "not run"]
    wall = spread([run["wall_s"] for run in row["runs"]])
    plan = (len(row["runs"]), row["warmups"])
    return [
        title if plan == usual else f"{title} ({_plan(plan)})",
        within(wall),
        number(spread([run["cpu_s"] for run in row["runs"]])["median"]),
        number(max(run["peak_mb"] for run in row["runs"])),
        number(raw_mb / wall["median"]),
        _ratio(row, rows),
        _answer(row),
    ]


def _ratio(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the ratio to our time, repetition by repetition."""
    ours = next((other for other in rows if other["route"] == OURS), None)
    if ours is None or row["route"] == OURS:
        return "1" if row["route"] == OURS else ""
    mine = {run["repetition"]: run["wall_s"] for run in ours["runs"]}
    pairs = [(run["wall_s"], mine[run["repetition"]]) for run in row["runs"] if run["repetition"] in mine]
    return within(ratios([a for a, _ in pairs], [b for _, b in pairs])) if pairs else ""


def _answer(row: Mapping[str, Any]) -> str:
    if row["answer"] is None:
        return "not compared"
    told = "equal" if row["answer"] == "equal" else f"DISAGREES: {row['answer']}"
    return f"{told}; {row['skipped']}" if row["skipped"] else told


def _others(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how quiet the machine was."""
    runs = [run for row in rows for run in row["runs"]]
    if not runs:
        return "No run was measured."
    known = [run["others"] for run in runs if run["others"] is not None]
    if not known:
        return "What else ran on the machine is not known."
    left = sum(run["disturbed"] for run in runs)
    repeated = sum(run["attempts"] > 1 for run in runs)
    return (
        f"{len(runs)} runs. Others used {spread(known)['median']:.1%} of one core in the median run and "
        f"{max(known):.1%} at most. {repeated} runs were repeated because others used more than {SHARE:.0%} of a core; "
        f"{left} stayed above that."
    )
