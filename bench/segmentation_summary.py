"""Outcomes of all seeds -> rates by family and feature, errors by kind, and what confidence is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.calibration import Claim, auc, bins, brier, calibration_error, wilson
from bench.segmentation_trials import KINDS, RATES

EDGES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
EXAMPLES = 5

Row = dict[str, Any]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return everything the page shows. ``rows`` as ``segmentation_trials.run`` makes them, in order of seeds."""
    traces = [_claim(row["claim"]) for row in rows if row["claim"] is not None]
    sequences = [_claim(row["sequence"]["claim"]) for row in rows]
    return {
        "all": _rate(rows),
        "by": {name: _by(rows, values) for name, values in FEATURES.items()},
        "errors": _errors(rows),
        "without_claim": len(rows) - len(traces),
        "calibration": {"traces": calibration(traces), "sequences": calibration(sequences)},
        "sequences_by_rate": [
            {
                "rate": rate,
                **share([each["sequence"]["claim"][1] for each in rows if each["sequence"]["rate"] == rate]),
            }
            for rate in RATES
        ],
        "wrong_seeds": [row["seed"] for row in rows if row["error"]],
    }


def _rate(rows: Sequence[Row]) -> dict[str, Any]:
    return share([not row["error"] for row in rows])


def share(right: Sequence[bool]) -> dict[str, Any]:
    """Return how many are right, of how many, and the rate's interval."""
    low, high = wilson(sum(right), len(right))
    return {"right": sum(right), "of": len(right), "low": low, "high": high}


def _at_rate(rows: Sequence[Row], rate: float) -> dict[str, Any]:
    sequences = (row["sequence"] for row in rows)
    return share([bool(sequence["claim"][1]) for sequence in sequences if sequence["rate"] == rate])


def _layers(row: Row) -> list[str]:
    for most, name in ((1, "1"), (2, "2"), (3, "3"), (16, "4 to 16")):
        if row["layers"] <= most:
            return [name]
    return ["17 and more"]


FEATURES: dict[str, Callable[[Row], Iterable[str]]] = {
    "family": lambda row: [row["family"]],
    "attention": lambda row: [row["attention"]],
    "feed-forward": lambda row: [row["feed_forward"]],
    "layers": _layers,
    "kinds of blocks": lambda row: [str(row["kinds"])],
    "launches": lambda row: [row["launch"]],
    "step markers": lambda row: [row["engine"]],
    "streams": lambda row: [str(row["streams"]) if row["streams"] < 4 else "4 and more"],
    "family and layers": lambda row: [f"{row['family']}, {_layers(row)[0]}"],
    "trouble": lambda row: row["damage"] or ["none"],
    "troubles at once": lambda row: [str(len(row["damage"]))],
}
"""Name -> the values that a trace counts under; of troubles it may have several."""


def _by(rows: Sequence[Row], values: Callable[[Row], Iterable[str]]) -> dict[str, Any]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        for value in values(row):
            groups.setdefault(value, []).append(row)
    return {value: _rate(groups[value]) for value in sorted(groups)}


def _errors(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found = []
    for kind in KINDS:
        wrong = [row for row in rows if row["error"] == kind]
        families = Counter(row["family"] for row in wrong).most_common(3)
        troubled = sum(bool(row["damage"]) for row in wrong)
        seeds = [row["seed"] for row in wrong[:EXAMPLES]]
        found.append(
            {"kind": kind, "traces": len(wrong), "troubled": troubled, "families": dict(families), "seeds": seeds}
        )
    return found


def _claim(claim: Sequence[Any]) -> Claim:
    return float(claim[0]), bool(claim[1])


def calibration(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return scores and the reliability table of claims."""
    if not claims:
        return {"claims": 0}
    table = []
    for low, high, members in zip(EDGES, EDGES[1:], bins(claims, EDGES), strict=False):
        mean = sum(confidence for confidence, _ in members) / len(members) if members else None
        table.append({"from": low, "to": high, "mean": mean, **share([right for _, right in members])})
    return {
        "claims": len(claims),
        "right": sum(right for _, right in claims),
        "auc": auc(claims),
        "brier": brier(claims),
        "error": calibration_error(claims, EDGES),
        "bins": table,
    }
