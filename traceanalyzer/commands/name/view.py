"""Readings of kernel names as the contract's JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.names import KernelName, parse
from traceanalyzer.wording import visible

SCHEMA = "traceanalyzer/names/1"
NOT_IN_NAME = "not in the name"


def document(names: Iterable[str]) -> dict[str, Any]:
    """Return the JSON document of ``name``."""
    return {"schema": SCHEMA, "names": [parse(name).to_dict() for name in names]}


def render(names: Iterable[str]) -> Group:
    """Return each name and, below it, a line a fact."""
    return Group(*(part for name in names for part in _reading(parse(name))))


def _reading(kernel: KernelName) -> list[Text | Table]:
    types = kernel.dtypes
    facts = {
        "scheme": kernel.scheme,
        "kind": kernel.kind if kernel.kind == kernel.family else f"{kernel.kind} ({kernel.family})",
        "tile": _tile(kernel),
        "split_k": kernel.split_k,
        "stages": kernel.stages,
        "cluster": "x".join(map(str, kernel.cluster)) if kernel.cluster else None,
        "dtypes": _dtypes(types.output, types.activation, types.weight),
        "epilogue": kernel.epilogue,
        "role": kernel.role or "decided by its position",
        "retunable": "yes" if kernel.retunable else "no",
        "knob": kernel.knob,
        "ambiguous": kernel.ambiguous,
    }
    optional = ("split_k", "stages", "cluster", "epilogue", "knob", "ambiguous")
    grid = Table.grid(padding=(0, 2))
    for fact, value in facts.items():
        if value is not None or fact not in optional:
            grid.add_row(Text(f"  {fact}"), Text(NOT_IN_NAME if value is None else visible(str(value))))
    return [Text(visible(kernel.name), style="bold"), grid]


def _tile(kernel: KernelName) -> str | None:
    if kernel.tile is None:
        return None
    sides = zip(("block_m", "block_n", "block_k"), kernel.tile, strict=True)
    return ", ".join(f"{side} {'unknown' if size is None else size}" for side, size in sides)


def _dtypes(output: str | None, activation: str | None, weight: str | None) -> str | None:
    if output is None and activation is None and weight is None:
        return None
    return f"output {output or 'unknown'}, activation {activation or 'unknown'}, weight {weight or 'unknown'}"
