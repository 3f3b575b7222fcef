"""What ``tune verify`` answers: two tiles measured in turns, or what changed end to end."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.measure.result import NO_MEASUREMENT
from traceanalyzer.commands.tune.verify.outcome import TileOutcome, TimeChange
from traceanalyzer.commands.tune.verify.result import (
    ComparedSteps,
    TpotAtLoad,
    TpotChange,
    TraceOutcome,
    TuneOutcomeDocument,
    TuneVerifyDocument,
    VerifiedProblem,
)
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.names import short_name
from traceanalyzer.serving.result import ServingDocument
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration, duration_us, signed, signed_us, visible

NAME_WIDTH = 60
"""Characters of a kernel's name, beside four columns in a width of 100."""
TPOT = "mean_tpot_ms"
MOST_ROWS = 12
"""Kernels that are listed: what fits a screen. Chosen."""

VERDICTS = {
    "tile": "the tile explains the step's change",
    "partly": "the tile explains part of the step's change",
    "other": "the tile does not explain the step's change",
    "hidden": "no tile visibly changed, but kernels whose names lack the tile make up the change",
    "none": "no tile visibly changed",
    "unclear": "whether the step changed is unclear: too few steps of a kind (three on either side), or within noise",
}


def render(document: TuneVerifyDocument, width: int) -> Group:
    """Return before and after of every problem as a table."""
    rows = [
        (
            str(one.problem.m),
            one.routing[:20] if one.routing else "-",
            "n/a" if one.before.median_ms is None else f"{one.before.median_ms:.4f} ms",
            "n/a" if one.after.median_ms is None else f"{one.after.median_ms:.4f} ms",
            _ratio(one),
            one.verdict,
        )
        for one in document.problems
    ]
    first = document.problems[0]
    head = f"{document.kernel} ({document.backend}) on {document.device['name']}"
    what = f"  before {first.before.launch.label}, after {first.after.launch.label}"
    columns = ("m", "routing", "before", "after", "after / before", "verdict")
    parts: list[Any] = [Text(head, style="bold"), Text(what), Text()]
    parts.append(table(columns, rows, name_column=None, width=width))
    for one in document.problems:
        tiles = (tile for tile in (one.before, one.after) if tile.reason)
        parts += [Text(f"  m={one.problem.m}: {tile.launch.label}: {tile.reason}") for tile in tiles]
    if not document.measured:
        parts.append(Text(NO_MEASUREMENT, style="bold"))
    return Group(*parts)


def outcome_document(outcome: TileOutcome | None, serving: ServingDocument | None) -> TuneOutcomeDocument:
    """Return the JSON document of ``tune verify`` without a kernel: of two traces, two serving results, or both."""
    traces = None
    if outcome:
        steps = rows_of(ComparedSteps, outcome.compared.matched)
        traces = part_of(TraceOutcome, outcome, message=VERDICTS[outcome.attribution], steps=steps)
    return TuneOutcomeDocument(
        traces=traces,
        serving=serving,
        tpot=_tpot(outcome, serving),
    )


def _tpot(outcome: TileOutcome | None, serving: ServingDocument | None) -> TpotChange:
    """Change of TPOT in percent by the traces, and as the benchmark measured it at every load."""
    traced = outcome.period.change_percent if outcome and outcome.tpot and outcome.period else None
    rows = [change for change in serving.metrics if change.metric == TPOT] if serving else []
    return TpotChange(traces_change_percent=traced, serving=[part_of(TpotAtLoad, row) for row in rows])


def _ratio(one: VerifiedProblem) -> str:
    if one.ratio is None or one.ratio_interval is None:
        return "n/a"
    return f"{one.ratio:.3f}x ({one.ratio_interval[0]:.3f}-{one.ratio_interval[1]:.3f})"


def render_outcome(outcome: TileOutcome | None, serving: ServingDocument | None, width: int) -> Group:
    """Return what changed between two traces, two serving results, or both."""
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
        parts.append(Text(f"  everything else: {signed(outcome.rest_ns)} per step"))
    if outcome.period:
        parts.append(Text(f"  {_line('TPOT' if outcome.tpot else 'step with the pause before it', outcome.period)}"))
    rows = [
        (
            short_name(one.name_after or one.name_before or "", NAME_WIDTH),
            one.role or "other",
            duration_us(one.before_us),
            duration_us(one.after_us),
            signed_us(one.delta_us),
        )
        for one in (*outcome.kernels, *outcome.hidden)[:MOST_ROWS]
    ]
    if rows:
        columns = ("kernel", "role", "before", "after", "change")
        parts += [Text(), table(columns, rows, name_column=0, width=width)]
    told = [one for one in outcome.kernels if one.tile][:MOST_ROWS]
    return [*parts, *(Text(visible(f"  {one.role}: {one.what}")) for one in told)]


def _line(what: str, one: TimeChange) -> str:
    share = "" if one.change_percent is None else f", {one.change_percent:+.1f} %"
    noise = "" if one.half_interval_ns is None else f" ± {duration(one.half_interval_ns)}"
    return f"{what} {duration(one.before_ns)} -> {duration(one.after_ns)} ({signed(one.delta_ns)}{noise}{share})"
