"""What confidence is worth where some traces hold no transformer."""

from __future__ import annotations

from typing import Any

from bench.sections.segmentation import interval, reliability, scores
from bench.sections.text import table

RESULTS = "negatives"
ORDER = 51


def render(document: dict[str, Any]) -> str:
    """Return how many negatives get blocks, by family, and the reliability tables."""
    outcome, settings = document["results"], document["settings"]
    fitted, unseen = outcome["negatives"]["fitted"], outcome["negatives"]["unseen"]
    calibration = outcome["calibration"]
    right = outcome["positives"]
    parts = [
        f"**{_found(unseen)} of {unseen['traces']:,} traces without a transformer get blocks with a confidence "
        f"above 0.3** (95 % interval {interval(unseen['found'])}), of families that chose no threshold; of those that "
        f"did, {_found(fitted)} of {fitted['traces']:,}. "
        f"Of the transformers, {right['right']:,} of {right['of']:,} are "
        f"exactly right. Seeds from {settings['first']:,}; {document['date']}.",
        _families(outcome["families"]),
        "**Transformers and others together**, families that chose no threshold. " + scores(calibration["together"]),
        reliability(calibration["together"]),
        "**Transformers.** " + scores(calibration["transformers"]),
        reliability(calibration["transformers"]),
        "**Others**: no claim is right. " + _others(calibration["others"], unseen),
        reliability(calibration["others"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _found(each: dict[str, Any]) -> str:
    return f"{each['found']['right']:,}"


def _families(groups: dict[str, Any]) -> str:
    rows = [
        (
            family,
            "yes" if kind == "fitted" else "no",
            f"{each['traces']:,}",
            f"{each['shown']:,}",
            _found(each),
            "–" if each["highest"] is None else f"{each['highest']:.2f}",
        )
        for kind, families in groups.items()
        for family, each in families.items()
    ]
    return table(("family", "chose thresholds", "traces", "show blocks", "above 0.3", "highest confidence"), rows)


def _others(calibration: dict[str, Any], unseen: dict[str, Any]) -> str:
    silent = unseen["traces"] - calibration["claims"]
    return f"{silent:,} of {unseen['traces']:,} show no blocks and claim nothing."
