"""Pieces of Markdown that sections share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, columns after the first aligned right where their cells are numbers."""
    lines = list(rows)
    marks = ["---:" if lines and all(_numeric(row[i]) for row in lines) else "---" for i in range(len(header))]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in [header, marks, *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _numeric(text: str) -> bool:
    return not text or text[0].isdigit() or text in {"-", "–"}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with some significant digits, thousands separated, never in powers of ten; empty for null."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    shown = float(f"{value:.{digits}g}")
    size = len(str(int(abs(shown)))) if abs(shown) >= 1 else 0
    decimals = max(0, digits - size) if abs(shown) >= 1 else digits - 1 - _exponent(shown)
    return f"{shown:,.{decimals}f}"


def _exponent(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def within(spread: Mapping[str, float | int], digits: int = 3) -> str:
    """Return median and, where there are several runs, smallest and largest: ``3.41 (3.38–3.52)``."""
    median = number(spread["median"], digits)
    if spread["runs"] < 2:
        return median
    return f"{median} ({number(spread['min'], digits)}–{number(spread['max'], digits)})"


def context(document: Mapping[str, Any]) -> str:
    """Say in one line on what a benchmark was measured: belongs above every table of times."""
    machine, versions = document["machine"], document["versions"]
    known = [
        machine.get("cpu"),
        f"{machine['cores']} cores",
        f"{machine['memory_gb']:g} GB",
        machine.get("system"),
        machine.get("file_system"),
    ]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    made = f"commit {document['commit']}" if document.get("commit") else "outside of a working copy"
    return f"Measured {document['date']} on {', '.join(str(part) for part in known if part)}; {named}; {made}."
