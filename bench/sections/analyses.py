"""What an analysis of a large trace takes once it was ingested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.inputs import DESCRIPTIONS
from bench.sections.text import context, number, table, within
from bench.summary import spread

RESULTS = "analyses"
ORDER = 30
LIMIT_S = 5.0
TITLES = {
    "ingest": "`ingest` (the second time)",
    "blocks": "`blocks`",
    "hotspots": "`hotspots`",
    "headroom": "`hotspots --model --gpu`",
    "roofline": "`roofline`",
    "idle": "`idle`",
    "diff": "`diff` of two traces",
    "ranks": "`ranks`",
    "report": "`report`",
}
HEADER = ("analysis", "command, wall s", "command, CPU s", "peak MB", "library call, s")


def render(document: dict[str, Any]) -> str:
    """Return the verdict and the table."""
    results = document["results"]
    sizes = results["raw_mb"]
    told = (
        f"Inputs: {number(sizes['trace'])} MB of raw JSON ({DESCRIPTIONS[results['kind']]}), a second of "
        f"{number(sizes['after'])} MB for `diff`, and for `ranks` {results['ranks']} generated traces of "
        f"{number(sizes['ranks'] / results['ranks'])} MB each. Medians (runs: {document['settings']['repeats']}), in "
        "brackets the smallest and the largest. A command's time includes starting Python and printing; the library "
        "call's does not include imports."
    )
    rows = [_line(name, found) for name, found in results["analyses"].items()]
    return "\n\n".join([verdict(document), context(document), told, table(HEADER, rows), _others(results["analyses"])])


def verdict(document: Mapping[str, Any]) -> str:
    """Say whether a command takes longer than ``LIMIT_S``, by the medians."""
    found = document["results"]["analyses"]
    medians = {name: spread([run["wall_s"] for run in one["command"]])["median"] for name, one in found.items()}
    slowest = max(medians, key=lambda name: medians[name])
    above = [TITLES[name] for name, median in medians.items() if median > LIMIT_S]
    most = f"the slowest, {TITLES[slowest]}, takes {number(medians[slowest])} s"
    size = number(document["results"]["raw_mb"]["trace"])
    if not above:
        return (
            f"On a trace of {size} MB none of the {len(medians)} commands takes above {LIMIT_S:g} s: {most} (median)."
        )
    return (
        f"On a trace of {size} MB {len(above)} of the {len(medians)} commands take{'s' * (len(above) == 1)} above "
        f"{LIMIT_S:g} s ({', '.join(above)}): {most} (median)."
    )


def _line(name: str, found: Mapping[str, Any]) -> list[str]:
    command = found["command"]
    return [
        TITLES[name],
        within(spread([run["wall_s"] for run in command])),
        number(spread([run["cpu_s"] for run in command])["median"]),
        number(max(run["peak_mb"] for run in command)),
        within(spread([run["call_s"] for run in found["call"]])),
    ]


def _others(found: Mapping[str, Any]) -> str:
    runs = [run for one in found.values() for way in ("command", "call") for run in one[way]]
    known = [run["others"] for run in runs if run["others"] is not None]
    if not known:
        return "What else ran on the machine is not known."
    left = sum(run["disturbed"] for run in runs)
    return (
        f"Others used {spread(known)['median']:.1%} of one core in the median run; {left} of {len(runs)} runs stayed "
        "disturbed after repeating."
    )
