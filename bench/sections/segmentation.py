"""How often steps and blocks are exactly right, and what the reported confidence is worth."""

from __future__ import annotations

from typing import Any

from bench.sections.text import table

RESULTS = "segmentation"
ORDER = 50
LAYERS = ("1", "2", "3", "4 to 16", "17 and more")
"""In the order of the columns; names of other features sort as text."""


def render(document: dict[str, Any]) -> str:
    """Return rates, errors and calibration."""
    found, settings = document["results"], document["settings"]
    rate, calibration = found["all"], found["calibration"]
    first = settings["first_seed"]
    parts = [
        f"**{_percent(rate)} of {rate['of']:,} traces are exactly right** (95 % interval {interval(rate)}). "
        f"Seeds {first:,} to {first + settings['seeds'] - 1:,}, which neither tests nor development used; "
        f"{document['date']}, {_commit(document)}.",
        "Intervals are Wilson's, 95 %. A trace with several troubles counts under each.",
        *(
            _matrix(groups) if name == "family and layers" else _rates(name, groups)
            for name, groups in found["by"].items()
        ),
        "**Errors**, each trace under its gravest",
        table(
            ("what is wrong", "traces", "of them with trouble in the recording", "most often", "seeds, for example"),
            [_error(each) for each in found["errors"]],
        ),
        "**Confidence.** Of each trace the complete step with the lowest confidence; right when all of its blocks are. "
        f"{found['without_claim']:,} traces have no such step: none was found, or none with blocks.",
        scores(calibration["traces"]),
        reliability(calibration["traces"]),
        "The same on bare sequences of kernel names, one step of each model, with a share of the kernels lost and half "
        "as many of the others renamed. Where what is left has two readings, one of them counts as wrong.",
        scores(calibration["sequences"]),
        reliability(calibration["sequences"]),
        table(
            ("kernels lost", "sequences", "exactly right", "interval"),
            [_line(f"{100 * each['rate']:g} %", each) for each in found["sequences_by_rate"]],
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _rates(name: str, groups: dict[str, Any]) -> str:
    ordered = [each for each in LAYERS if each in groups] if name == "layers" else list(groups)
    lines = [_line(each, groups[each]) for each in ordered]
    return f"**By {name}**\n\n" + table((name, "traces", "exactly right", "interval"), lines)


def _matrix(groups: dict[str, Any]) -> str:
    """One line a family, one column a number of layers; intervals are left out."""
    cells: dict[str, dict[str, str]] = {}
    for name, rate in groups.items():
        family, _, layers = name.rpartition(", ")
        cells.setdefault(family, {})[layers] = f"{rate['right']} of {rate['of']}"
    lines = [(family, *(found.get(layers, "–") for layers in LAYERS)) for family, found in cells.items()]
    head = ("family", *("1 layer" if layers == "1" else f"{layers} layers" for layers in LAYERS))
    return "**By family and layers**: exactly right, of so many traces\n\n" + table(head, lines)


def _commit(document: dict[str, Any]) -> str:
    return f"commit {document['commit']}" if document.get("commit") else "outside of a working copy"


def _line(name: str, rate: dict[str, Any]) -> tuple[str, ...]:
    return (name, f"{rate['of']:,}", _percent(rate), interval(rate))


def _percent(rate: dict[str, Any]) -> str:
    return f"{100 * rate['right'] / rate['of']:.2f} %" if rate["of"] else "–"


def interval(rate: dict[str, Any]) -> str:
    """Return the 95 % interval of a rate."""
    return f"{100 * rate['low']:.1f} to {100 * rate['high']:.1f} %" if rate["of"] else "–"


def _error(each: dict[str, Any]) -> tuple[str, ...]:
    families = "; ".join(f"{name} ({count})" for name, count in each["families"].items())
    seeds = ", ".join(map(str, each["seeds"]))
    return (each["kind"], f"{each['traces']:,}", f"{each['troubled']:,}", families, seeds)


def scores(found: dict[str, Any]) -> str:
    """Return what claims of confidence are worth, in a sentence."""
    if not found["claims"]:
        return ""
    separation = "not defined, since all are alike" if found["auc"] is None else f"{found['auc']:.3f}"
    return (
        f"{found['claims']:,} claims, {100 * found['right'] / found['claims']:.1f} % right. A right one has "
        f"the higher confidence with probability {separation} (AUC); Brier score {found['brier']:.3f}; expected "
        f"calibration error {found['error']:.3f}, over the bins below."
    )


def reliability(found: dict[str, Any]) -> str:
    """Return the reliability table: confidence against the share that is right."""
    if not found["claims"]:
        return ""
    rows = [
        (
            f"{each['from']:g} to {each['to']:g}",
            f"{each['of']:,}",
            "–" if each["mean"] is None else f"{each['mean']:.3f}",
            *(_percent(each), interval(each)),
        )
        for each in found["bins"]
    ]
    return table(("confidence", "claims", "mean confidence", "right", "interval"), rows)
