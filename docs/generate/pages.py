"""The generated pages by file name, and where they lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate import columns, commands, documents, gpus, models, rooms

FOLDER = Path(__file__).resolve().parent.parent / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "json.md": documents.page,
    "columns.md": columns.page,
    "gpus.md": gpus.page,
    "models.md": models.page,
}
"""File name -> what makes its text."""


def generated() -> dict[Path, str]:
    """Return the text of every generated file."""
    pages = {FOLDER / name: make() for name, make in PAGES.items()}
    return pages | documents.schema_files() | {rooms.PAGE: rooms.page()}
