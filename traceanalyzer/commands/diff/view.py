"""The comparison of two traces as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.diff.compute import Diff, change
from traceanalyzer.commands.diff.result import DiffDocument, DiffRow, DiffSteps
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.segment.selection import phase_counts
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration_us, percent, signed_us, step_of

LEAST_SHOWN_US = 0.0005
"""Changes below this would round to 0 ns and are not shown."""

LEAST_TOLD_US = 0.001
"""Added and removed kernels that take less get no sentence; chosen, not fitted."""

MOST_SENTENCES = 8


def document(comparison: Diff) -> DiffDocument:
    """Return the JSON document of ``diff``."""
    rows = [
        part_of(DiffRow, row, change=change(row["name_before"], row["name_after"]))
        for row in comparison.rows.iter_rows(named=True)
    ]
    return part_of(DiffDocument, comparison, rows=rows, steps=rows_of(DiffSteps, comparison.matched))


def _scope(answer: DiffDocument) -> str:
    phases = {step.phase for step in answer.steps}
    return step_of(phases.pop() if len(phases) == 1 else None)


def _averaged(answer: DiffDocument) -> Iterator[str]:
    """Say what a mean over steps of several phases is of."""
    there: dict[str, int] = {}
    for step in answer.steps:
        there[step.phase] = there.get(step.phase, 0) + step.steps_before
    if len(there) > 1:
        there = dict(sorted(there.items(), key=lambda counted: (-counted[1], counted[0])))
        yield f"a mean over steps of different phases, as often as before: {phase_counts(there)}; --phase compares one"


def render(answer: DiffDocument, limit: int, width: int) -> Group:
    """Return the verdict in a sentence, then the changes, largest first; ``limit`` rows, 0 for all."""
    delta = answer.after_step_us - answer.before_step_us
    share = delta / answer.before_step_us if answer.before_step_us else None
    before, after = duration_us(answer.before_step_us), duration_us(answer.after_step_us)
    heading = (
        f"{before} -> {after} of device time per {_scope(answer)} "
        f"({signed_us(delta)}, {'+' if delta > 0 else ''}{percent(share)})"
    )
    told = [*_averaged(answer), *_sentences(answer)][:MOST_SENTENCES]
    parts: list[Any] = [Text(heading, style="bold"), *(Text(f"  {line}") for line in told), Text()]
    shown = [row for row in answer.rows if abs(row.delta_us) >= LEAST_SHOWN_US][: limit or None]
    # Rows are by size of the change, so that those shown are the first ones.
    rest = sum(row.delta_us for row in answer.rows[len(shown) :])
    if shown:
        cells = [
            (
                row.role or "unknown",
                row.name_after or row.name_before or "",
                duration_us(row.before_us),
                duration_us(row.after_us),
                signed_us(row.delta_us),
            )
            for row in shown
        ]
        parts.append(table(("role", "kernel", "before", "after", "change"), cells, name_column=1, width=width))
    parts.append(Text(f"  all other rows {signed_us(rest)}; not in any row {signed_us(answer.unattributed_us)}"))
    spans = f"{duration_us(answer.before_span_us)} -> {duration_us(answer.after_span_us)}"
    change_of_span = signed_us(answer.after_span_us - answer.before_span_us)
    parts.append(Text(f"  first to last event of a step: {spans} ({change_of_span})"))
    return Group(*parts)


def _sentences(answer: DiffDocument) -> Iterator[str]:
    """Tile and library changes in words, the largest first."""
    for row in answer.rows:
        if row.change is None or (row.change in {"added", "removed"} and abs(row.delta_us) < LEAST_TOLD_US):
            continue
        where = f" of {row.blocks} blocks" if row.section == "block" else f" in the {row.section}"
        kind = f" ({row.block_kind})" if row.block_kind else ""
        yield f"{row.role or 'unknown role'}{where}{kind}: {row.change}, {signed_us(row.delta_us)} per step"
