"""Where kernels come from, as text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.source.result import SourceDocument, SourceRow
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import cut_middle, duration_us, percent, plural, visible

SPARE = (9, 8, 5, 4, 3, 6, 2)
"""Columns that a narrow terminal does without, the first to go first."""

HEADINGS = ("kernel", "role", "per step", "share", "op", "module", "line", "model line", "via", "agree")


def render(answer: SourceDocument, by: str, *, limit: int, width: int) -> Group:
    """Return how much is known, and the largest ``limit`` rows."""
    parts: list[Any] = [Text(_headline(answer), style="bold"), *map(Text, _mapped(answer)), Text()]
    rows = answer.rows[:limit]
    parts.append(
        table(
            HEADINGS,
            [_cells(row, by, width) for row in rows],
            name_column=0,
            width=width,
            shorten=cut_middle,
            spare=SPARE,
        )
    )
    if rest := answer.rows[limit:]:
        parts.append(Text(f"  and {plural(len(rest), 'more row')} (--limit 0 shows all)"))
    parts.append(Text("  a line is where its function begins"))
    return Group(*parts)


def _headline(answer: SourceDocument) -> str:
    steps = f"{plural(answer.steps, f'{answer.phase} step' if answer.phase else 'step')}"
    known = f"the source of {percent(answer.resolved_share)} of the kernel time is known"
    return f"{known} ({steps}, {duration_us(answer.total_us)})"


def _mapped(answer: SourceDocument) -> list[str]:
    ways = {
        "by its own launch": answer.by_via.launch,
        "by the graph's annotations": answer.by_via.annotation,
        "by the graph's capture": answer.by_via.capture,
        "by position": answer.by_via.position,
    }
    lines = ["  " + ", ".join(f"{percent(share)} {way}" for way, share in ways.items() if share > 0)]
    mapping = answer.mapping
    if mapping is not None and mapping.step is not None:
        phase = f"{mapping.phase} " if mapping.phase and mapping.phase != "unknown" else ""
        lines.append(
            f"  positions are those of {phase}step {mapping.step} of {visible(mapping.source or '')}, with "
            f"{plural(mapping.blocks or 0, 'block')}; confidence {mapping.confidence:.2f}"
        )
    elif mapping is not None and mapping.reason:
        lines.append(f"  {visible(mapping.reason)}")
    return [line for line in lines if line.strip()]


def _cells(row: SourceRow, by: str, width: int) -> list[str]:
    place = max(width // 5, 16)
    role = row.role or "several"
    named = f"{role}#{row.ordinal}" if row.ordinal is not None and by in ("kernel", "role") else role
    return [
        row.short,
        named,
        duration_us(row.per_step_us),
        percent(row.share),
        cut_middle(row.op or "", place),
        cut_middle(row.module_class or "", place),
        _line(row.file, row.line, row.function, place, compiled=row.compiled),
        _line(row.model_file, row.model_line, row.model_function, place),
        row.via or (row.reason or "").replace("_", " "),
        percent(row.agreement) if row.agreement is not None and row.agreement < 1 else "",
    ]


def _line(file: str | None, line: int | None, function: str | None, width: int, *, compiled: bool = False) -> str:
    if file is None:
        return "(compiled)" if compiled else ""
    name = file.rsplit("/", 1)[-1]
    return cut_middle(f"{name}:{line} {function}", width + 6)
