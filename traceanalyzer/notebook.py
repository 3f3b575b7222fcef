"""How results look in a notebook: single figures as a list, frames as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import polars as pl

ROWS = 10
"""Rows that are shown of each frame."""


class NotebookView:
    """Gives a dataclass of figures and frames a form for notebooks; everything in it is escaped."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def _repr_html_(self) -> str:
        """Return what Jupyter shows instead of ``repr``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        facts = {name: text for name, value in values.items() if (text := _fact(value)) is not None}
        parts = [facts_html(type(self).__name__, facts)]
        for name, value in values.items():
            frame = _frame(value)
            if frame is not None and frame.width:
                rest = f" (first {ROWS} of {frame.height:,} rows)" if frame.height > ROWS else ""
                parts.append(f"<p><b>{escape(name)}</b>{rest}</p>{frame.head(ROWS)._repr_html_()}")
            elif isinstance(value, tuple) and value and all(hasattr(one, "message") for one in value):
                items = "".join(f"<li>{escape(str(one.message))}</li>" for one in value[:ROWS])
                parts.append(f"<p><b>{escape(name)}</b></p><ul>{items}</ul>")
        return "".join(parts)


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """A line of names and values."""
    told = " · ".join(f"{escape(name)} <b>{escape(text)}</b>" for name, text in facts.items())
    return f"<p><code>{escape(title)}</code> {told}</p>"


def _fact(value: Any) -> str | None:
    """A single figure as text; None for anything else."""
    if isinstance(value, bool | int | str):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f"{value:,.1f}" if isinstance(value, float) else None


def _frame(value: Any) -> pl.DataFrame | None:
    """A frame, also of a tuple of dataclasses that hold single figures; None for anything else."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value
    if isinstance(value, tuple) and value and all(is_dataclass(one) for one in value):
        if any(hasattr(one, "message") for one in value):
            return None
        rows = [
            {f.name: v for f in fields(one) if isinstance(v := getattr(one, f.name), str | int | float) or v is None}
            for one in value
        ]
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)
    return None
