"""What kernel names say, as text."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs
from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.names import Dtypes, KernelName
from traceanalyzer.names.kernel_name import NOT_SAID
from traceanalyzer.wording import visible


def render(readings: Iterable[KernelName]) -> Group:
    """Return each name and, below it, one line per fact."""
    return Group(*(part for reading in readings for part in _reading(reading)))


def _reading(kernel: KernelName) -> list[Text | Table]:
    facts = {
        "scheme": kernel.scheme,
        "kind": kernel.kind if kernel.kind == kernel.family else f"{kernel.kind} ({kernel.family})",
        "tile": _tile(kernel),
        "split_k": kernel.split_k,
        "stages": kernel.stages,
        "cluster": "x".join(map(str, kernel.cluster)) if kernel.cluster else None,
        "dtypes": _dtypes(kernel.dtypes),
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
            grid.add_row(Text(f"  {fact}"), Text(NOT_SAID if value is None else visible(str(value))))
    return [Text(visible(kernel.name), style="bold"), grid]


def _tile(kernel: KernelName) -> str | None:
    if kernel.tile is None:
        return None
    sides = zip(("block_m", "block_n", "block_k"), kernel.tile, strict=True)
    return ", ".join(f"{side} {'unknown' if size is None else size}" for side, size in sides)


def _dtypes(types: Dtypes) -> str | None:
    told = structs.asdict(types)
    return ", ".join(f"{side} {dtype or 'unknown'}" for side, dtype in told.items()) if any(told.values()) else None
