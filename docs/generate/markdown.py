"""Pieces of Markdown that the pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def note(what: str) -> str:
    """Return the comment that says where a page comes from."""
    return f"<!-- Made by `make reference` from {what}; changes here are lost. -->"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; whatever its cells hold stays in them."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text: str) -> str:
    """Return text that cannot end a cell."""
    return " ".join(text.replace("|", "\\|").split())


def figure(value: float | None) -> str:
    """Return a number in as few digits as it needs; empty where unknown."""
    return "" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")


def join(*parts: str) -> str:
    """Return paragraphs as one page."""
    return "\n\n".join(parts) + "\n"
