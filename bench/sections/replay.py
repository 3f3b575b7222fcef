"""How near the search comes with how few evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.replay import SHARES, SMALL, evaluations
from bench.replay_plot import TITLES, regret_plots
from bench.sections.text import table

RESULTS = "replay"
ORDER = 60
IMAGE = "replay.svg"
NAMES = {
    "clblast_gemm_rtx3090.json.gz": "CLBlast GEMM, RTX 3090",
    "inductor_autotune.csv": "Inductor, best of its tables",
    "strix_halo_sweep.log": "gpt-oss experts, Strix Halo",
    "fused_moe.jsonl": "fused_moe, made up for tests",
}
"""File -> short title."""


def render(document: dict[str, Any]) -> str:
    """Return the plots, the medians at shares of the space, and where the search is no better than chance."""
    tables = document["results"]["tables"]
    parts = [
        f"![Regret by number of evaluations, for every recorded sweep](images/{IMAGE})",
        "Lines are medians, bands quartiles; the scale of the regret is linear up to 10 %. Searches of a sweep are "
        f"those of all its spaces: {document['settings']['seeds']} each, ten times as many where a space has up to "
        f"{SMALL} configurations. Modelled on recorded timings: nothing was run on a GPU for it.",
        "Median regret in %, with the quartiles in brackets:",
        table(("sweep", "configurations in a space", "budget", "evaluations", *TITLES.values()), _rows(tables)),
        *_sorted_files(tables),
        _against_chance(tables),
    ]
    return "\n\n".join(parts)


def images(document: dict[str, Any]) -> dict[str, bytes]:
    """Return the small multiples."""
    tables = document["results"]["tables"]
    return {IMAGE: regret_plots(tables, [_name(each) for each in tables])}


def _name(each: Mapping[str, Any]) -> str:
    return NAMES.get(each["name"], str(each["name"]))


def _sorted_files(tables: list[dict[str, Any]]) -> list[str]:
    """Say which files are sorted by time, which nobody knows before measuring."""
    first = (each["budgets"][0]["regret"]["table order"] for each in tables)
    names = [_name(each) for each, regret in zip(tables, first, strict=True) if regret[2] == 0]
    return [f"Sorted by time, so that the order of the table says nothing: {'; '.join(names)}."] if names else []


def _rows(tables: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows = []
    for each in tables:
        low, size = each["configurations"]
        by_count = {budget["evaluations"]: budget["regret"] for budget in each["budgets"]}
        # Of small spaces several shares are the same number of evaluations.
        shares: dict[int, list[str]] = {}
        for share in SHARES:
            shares.setdefault(evaluations(share, size), []).append(_percent(share))
        if size <= SMALL:
            shares |= {count: [_percent(count / size)] for count in by_count if count not in shares}
        wide = f"{size:,}" if low == size else f"{low:,} to {size:,}"
        spaces = "" if each["problems"] == 1 else f", {each['problems']} spaces"
        for count, texts in shares.items():
            label = texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"
            cells = (_cell(by_count[count][strategy]) for strategy in TITLES)
            rows.append((_name(each), f"{wide}{spaces}", label, f"{count:,}", *cells))
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _cell(quartiles: list[float | None]) -> str:
    low, middle, high = ("nothing ran" if value is None else f"{100 * value:.1f}" for value in quartiles)
    return f"{middle} ({low}–{high})"


def _against_chance(tables: list[dict[str, Any]]) -> str:
    lines = [
        "Against chance: how often a search ends with less regret than a random one of as many evaluations (equal "
        "regrets count half; 50 % is no better). Where the 95 % interval lies below 50 % the search is worse than "
        "chance.",
    ]
    for each in tables:
        worse = [b for b in each["budgets"] if b["wins"] is not None and b["wins"] + b["wins_error"] < 0.5]
        better = [b for b in each["budgets"] if b["wins"] is not None and b["wins"] - b["wins_error"] > 0.5]
        lines.append(
            f"- {_name(each)}: worse at {_counts(worse)}, better at {_counts(better)}, undecided at the others."
        )
    return lines[0] + "\n\n" + "\n".join(lines[1:])


def _counts(budgets: list[dict[str, Any]]) -> str:
    if not budgets:
        return "no budget"
    return ", ".join(f"{b['evaluations']:,} ({b['wins']:.0%})".replace("%", " %") for b in budgets) + " evaluations"
