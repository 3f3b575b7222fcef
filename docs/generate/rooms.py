"""The graph of docs/architecture.md: which room imports which, read from the code."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "traceanalyzer"
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- rooms: made by make reference -->", "<!-- end of rooms -->"
ROOMS = frozenset(
    {"commands", "cli", "show", "roofline", "serving", "segment", "names", "hardware", "model", "kernels"}
)
GROUND = "foundations"
"""Single modules at the root that stand below the rooms: one box."""


def imports() -> set[tuple[str, str]]:
    """Return which room imports which, commands by their own names."""
    edges = set()
    for folder in (PACKAGE, "kernels"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(parent.is_symlink() for parent in path.parents):
                continue
            inside = path.relative_to(ROOT / folder) if folder == PACKAGE else Path("kernels", path.name)
            importer = room(".".join(inside.with_suffix("").parts))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                    imported = room((node.module or "").partition(".")[2] or node.names[0].name)
                    edges |= {(importer, imported)} if importer != imported else set()
    return {(a, b) for a, b in edges if a not in {"__init__", "__main__"}}


def room(module: str) -> str:
    """Return the room of a module, given without the package's name."""
    top = module.partition(".")[0]
    if top in ROOMS or top in {"read", "trace", "__init__", "__main__"}:
        return top
    return GROUND


def reduced(edges: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leave out what follows: an arrow between two rooms that other arrows connect as well."""
    return sorted((a, b) for a, b in edges if not _reaches(a, b, edges - {(a, b)}))


def _reaches(start: str, goal: str, edges: set[tuple[str, str]]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for a, b in edges:
            if a == here and b not in seen:
                if b == goal:
                    return True
                seen.add(b)
                waiting.append(b)
    return False


def graph() -> str:
    """Return the graph as Mermaid text."""
    lines = [f"    {a} --> {b}" for a, b in reduced(imports())]
    return "\n".join(("```mermaid", "graph TD", *lines, "```"))


def page() -> str:
    """Return the text of docs/architecture.md with the graph as the code has it now."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(START)
    return f"{head}{START}\n{graph()}\n{END}{rest.partition(END)[2]}"
