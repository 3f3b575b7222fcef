"""What a change brought end to end, from two traces, two serving results or both, as a JSON document and as text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.verify.outcome import TileOutcome, TimeChange
from traceanalyzer.commands.tune.verify.result import (
    ChangedTime,
    ComparedSteps,
    RetunedKernel,
    TpotAtLoad,
    TpotChange,
    TraceOutcome,
    TuneOutcomeDocument,
)
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.names import short_name
from traceanalyzer.serving.result import ServingDocument
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration, us, visible

NAME_WIDTH = 60
TPOT = "mean_tpot_ms"
MOST_ROWS = 12

VERDICTS = {
    "tile": "the tile explains the step's change",
    "partly": "the tile explains part of the step's change",
    "other": "the tile does not explain the step's change",
    "hidden": "no tile visibly changed, but kernels whose names lack the tile make up the change",
    "none": "no tile visibly changed",
    "unclear": "whether the step changed is unclear: too few steps of a kind (three on either side), or within noise",
}


def document(outcome: TileOutcome | None, serving: ServingDocument | None) -> TuneOutcomeDocument:
    """Return the JSON document of ``tune verify`` without a kernel.

    Args:
        outcome: the comparison of two traces, if any.
        serving: the comparison of two serving results, if any.
    """
    return TuneOutcomeDocument(
        traces=_traces(outcome) if outcome else None,
        serving=serving,
        tpot=_tpot(outcome, serving),
    )


def _traces(outcome: TileOutcome) -> TraceOutcome:
    return part_of(
        TraceOutcome,
        outcome,
        message=VERDICTS[outcome.attribution],
        step=_changed(outcome.step),
        tile=_changed(outcome.tile) if outcome.tile else None,
        rest_us=us(outcome.rest_ns),
        period=_changed(outcome.period) if outcome.period else None,
        kernels=[part_of(RetunedKernel, one) for one in outcome.changes],
        steps=rows_of(ComparedSteps, outcome.compared.matched),
    )


def _changed(one: TimeChange) -> ChangedTime:
    return part_of(
        ChangedTime, one, delta_us=us(one.delta_ns), change_percent=_change(one), half_interval_us=us(one.error_ns)
    )


def _change(one: TimeChange) -> float | None:
    return one.delta_ns / one.before_ns * 100 if one.before_ns else None


def _tpot(outcome: TileOutcome | None, serving: ServingDocument | None) -> TpotChange:
    """Change of TPOT in percent by the traces, and as the benchmark measured it at every load."""
    traced = _change(outcome.period) if outcome and outcome.tpot and outcome.period else None
    rows = [change for change in serving.metrics if change.metric == TPOT] if serving else []
    return TpotChange(traces_change_percent=traced, serving=[part_of(TpotAtLoad, row) for row in rows])


def render(outcome: TileOutcome | None, serving: ServingDocument | None, width: int) -> Group:
    """Return what changed for people."""
    parts: list[Any] = _render_traces(outcome, width) if outcome else []
    if serving:
        from traceanalyzer.commands.serving.view import render_comparison

        parts += [Text()] if parts else []
        parts += [Text("Serving", style="bold"), render_comparison(serving, width)]
    return Group(*parts)


def _render_traces(outcome: TileOutcome, width: int) -> list[Any]:
    parts: list[Any] = [Text(f"{_line('step', outcome.step)}: {VERDICTS[outcome.attribution]}", style="bold")]
    if outcome.tile:
        parts.append(Text(f"  {_line('kernels with another tile', outcome.tile)} ({outcome.tile.verdict})"))
        parts.append(Text(f"  everything else: {_signed(outcome.rest_ns)} per step"))
    if outcome.period:
        parts.append(Text(f"  {_line('TPOT' if outcome.tpot else 'step with the pause before it', outcome.period)}"))
    rows = [
        (
            short_name(one.name_after or one.name_before or "", NAME_WIDTH),
            one.role,
            duration(one.before_ns),
            duration(one.after_ns),
            _signed(one.delta_ns),
        )
        for one in (*outcome.changes, *outcome.hidden)[:MOST_ROWS]
    ]
    if rows:
        columns = ("kernel", "role", "before", "after", "change")
        parts += [Text(), table(columns, rows, name_column=0, width=width)]
    told = [one for one in outcome.changes if one.tile][:MOST_ROWS]
    return [*parts, *(Text(visible(f"  {one.role}: {one.what}")) for one in told)]


def _line(what: str, one: TimeChange) -> str:
    change = _change(one)
    share = "" if change is None else f", {change:+.1f} %"
    noise = "" if one.error_ns is None else f" ± {duration(one.error_ns)}"
    return f"{what} {duration(one.before_ns)} -> {duration(one.after_ns)} ({_signed(one.delta_ns)}{noise}{share})"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns))}"
