"""What packages offer to the command line, told by the first lines of their modules, which are not imported for it.

A module is found by a first line such as ``\"\"\"``traceanalyzer export csv``: tables as CSV.\"\"\"``: the words of the
command, then what the help says of it. The module holds a function of the command's last word. Modules without such a
line are helpers of those that have one. A folder stands for its ``command.py``, or for its ``compute.py`` where it
has no command of its own.
"""

from __future__ import annotations

import ast
import keyword
import pkgutil
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

HOMES = ("command", "compute")
"""Modules of a folder whose first line may declare it."""

FIRST_LINE = re.compile(r'^"""``traceanalyzer ((?:[a-z][a-z0-9-]* )*)([a-z][a-z0-9-]*)``: (.+?)\.?(?:""")?$')


@dataclass(frozen=True)
class Declared:
    """A module that offers something under a name.

    Attributes:
        name: the last word of its command.
        summary: the rest of its first line.
        module: what to import.
        path: its file.
    """

    name: str
    summary: str
    module: str
    path: Path

    @property
    def is_bare(self) -> bool:
        """Whether it is an analysis without a command of its own."""
        return self.path.name == f"{HOMES[1]}.py"

    def load(self) -> Any:
        """Import the module and return its function of that name; ``_`` for ``-``, and ``import_`` for ``import``."""
        name = self.name.replace("-", "_")
        return getattr(import_module(self.module), f"{name}_" if keyword.iskeyword(name) else name)

    def description(self) -> str:
        """Return the docstring of the module below its first line; the summary where there is none."""
        lines = (ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or "").partition("\n")
        return lines[2].strip() or f"{self.summary[:1].upper()}{self.summary[1:]}."


def declared(package: str, group: str = "") -> dict[str, Declared]:
    """Return what the modules and folders of a package declare, by name.
    Args:
        package: its dotted name; it is imported, its modules are not.
        group: the words before the name, such as ``export``; empty for commands of the first level.
    """
    offers = {}
    for info in pkgutil.iter_modules(import_module(package).__path__):
        place = Path(getattr(info.module_finder, "path", ""), info.name)
        files = [place / f"{name}.py" for name in HOMES] if info.ispkg else [place.with_suffix(".py")]
        path = next((file for file in files if file.is_file()), None)
        match = None if path is None else FIRST_LINE.match(_first_line(path))
        if path is not None and match and match[1].strip() == group:
            module = f"{package}.{info.name}.{path.stem}" if info.ispkg else f"{package}.{info.name}"
            offers[match[2]] = Declared(match[2], match[3], module, path)
    return offers


def bare_analyses() -> dict[str, Declared]:
    """Return the analyses that have no command of their own: each gives a table of its name."""
    return {name: one for name, one in declared("traceanalyzer.commands").items() if one.is_bare}


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""
