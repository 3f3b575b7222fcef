"""The comparison of two traces as the contract's JSON and as text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.diff.compute import Diff, change
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import (
    duration,
    percent,
    signed,
    us,
)

SCHEMA = "traceanalyzer/diff/1"
CSV_COLUMNS = (
    "section",
    "block_kind",
    "role",
    "name_before",
    "name_after",
    "change",
    "before_us",
    "after_us",
    "delta_us",
)


def document(found: Diff) -> dict[str, Any]:
    """Return the JSON document of ``diff``."""
    return {
        "schema": SCHEMA,
        "before_step_us": us(found.before_step_ns),
        "after_step_us": us(found.after_step_ns),
        "before_span_us": us(found.span_before_ns),
        "after_span_us": us(found.span_after_ns),
        "rows": [
            {
                "section": row["section"],
                "block_kind": row["block_kind"],
                "blocks": row["blocks"],
                "role": row["role"],
                "name_before": row["name_before"],
                "name_after": row["name_after"],
                "change": change(row["name_before"], row["name_after"]),
                "before_us": us(row["before_ns"]),
                "after_us": us(row["after_ns"]),
                "delta_us": us(row["delta_ns"]),
            }
            for row in found.rows.iter_rows(named=True)
        ],
        "unattributed_us": us(found.unattributed_ns),
        "steps": found.matched.to_dicts(),
        "warnings": [warning.to_dict() for warning in found.warnings],
    }


def render(found: Diff, limit: int, width: int) -> Group:
    """Return the verdict in a sentence, then the changes, largest first."""
    delta = found.after_step_ns - found.before_step_ns
    share = delta / found.before_step_ns if found.before_step_ns else None
    heading = (
        f"{duration(found.before_step_ns)} -> {duration(found.after_step_ns)} of device time a step "
        f"({signed(delta)}, {'+' if delta > 0 else ''}{percent(share)})"
    )
    parts: list[Any] = [Text(heading, style="bold"), *(Text(f"  {line}") for line in _sentences(found)), Text()]
    changed = found.rows.filter(found.rows["delta_ns"].abs() >= 0.5)
    shown = changed.head(limit or changed.height)
    rows = [
        (
            row["role"],
            row["name_after"] or row["name_before"],
            duration(row["before_ns"]),
            duration(row["after_ns"]),
            signed(row["delta_ns"]),
        )
        for row in shown.iter_rows(named=True)
    ]
    if rows:
        parts.append(table(("role", "kernel", "before", "after", "change"), rows, name_column=1, width=width))
    rest = float(found.rows["delta_ns"].sum()) - float(shown["delta_ns"].sum())
    parts.append(Text(f"  all other rows {signed(rest)}; not in any row {signed(found.unattributed_ns)}"))
    spans = f"{duration(found.span_before_ns)} -> {duration(found.span_after_ns)}"
    change_of_span = signed(found.span_after_ns - found.span_before_ns)
    parts.append(Text(f"  first to last event of a step: {spans} ({change_of_span})"))
    return Group(*parts)


def _sentences(found: Diff) -> list[str]:
    """Tile and library changes in words, the largest first."""
    told = []
    for row in found.rows.iter_rows(named=True):
        what = change(row["name_before"], row["name_after"])
        if what is None or (what in {"added", "removed"} and abs(row["delta_ns"]) < 1):
            continue
        where = f" of {row['blocks']} blocks" if row["section"] == "block" else f" in the {row['section']}"
        kind = f" ({row['block_kind']})" if row["block_kind"] else ""
        told.append(f"{row['role']}{where}{kind}: {what}, {signed(row['delta_ns'])} a step")
    return told[:8]
