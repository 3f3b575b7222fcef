"""What a change brought end to end, from two traces, two serving results or both: JSON and text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.verify.outcome import KernelChange, Measured, Outcome
from traceanalyzer.declare import plain
from traceanalyzer.names import short_name
from traceanalyzer.serving import ServingComparison
from traceanalyzer.serving.comparison import document as serving_document
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import duration, us, visible

SCHEMA = "traceanalyzer/tune-outcome/1"
NAME_WIDTH = 60
TPOT = "mean_tpot_ms"
MOST_ROWS = 12

VERDICTS = {
    "tile": "the step's change is the tile's",
    "partly": "part of the step's change is the tile's, the rest has other reasons",
    "other": "the step's change is not the tile's",
    "hidden": "no tile is seen to have changed, but kernels whose names do not hold their tile make up the change",
    "none": "no tile is seen to have changed",
    "unclear": "whether the step changed is unclear: too few steps of a kind (three on either side), or within noise",
}


def document(found: Outcome | None, serving: ServingComparison | None) -> dict[str, Any]:
    """Return the JSON document of ``tune verify`` without a kernel.

    Args:
        found: the comparison of two traces, if any.
        serving: the comparison of two serving results, if any.
    """
    return {
        "schema": SCHEMA,
        "traces": _traces(found) if found else None,
        "serving": plain(serving_document(serving, {})) if serving else None,
        "tpot": _tpot(found, serving),
    }


def _traces(found: Outcome) -> dict[str, Any]:
    return {
        "attribution": found.attribution,
        "message": VERDICTS[found.attribution],
        "step": _measured(found.step),
        "tile": _measured(found.tile) if found.tile else None,
        "rest_us": us(found.rest_ns),
        "period": _measured(found.period) if found.period else None,
        "kernels": [_kernel(one) for one in found.changes],
        "hidden": [_kernel(one) for one in found.hidden],
        "steps": found.found.matched.to_dicts(),
        "warnings": [warning.to_dict() for warning in found.warnings],
    }


def _measured(one: Measured) -> dict[str, Any]:
    return {
        "before_us": us(one.before_ns),
        "after_us": us(one.after_ns),
        "delta_us": us(one.delta_ns),
        "change_percent": _change(one),
        "half_interval_us": us(one.error_ns),
        "verdict": one.verdict,
    }


def _change(one: Measured) -> float | None:
    return one.delta_ns / one.before_ns * 100 if one.before_ns else None


def _kernel(one: KernelChange) -> dict[str, Any]:
    return {
        "role": one.role,
        "block_kind": one.block_kind,
        "name_before": one.name_before,
        "name_after": one.name_after,
        "what": one.what,
        "tile": one.tile,
        "before_us": us(one.before_ns),
        "after_us": us(one.after_ns),
        "delta_us": us(one.delta_ns),
    }


def _tpot(found: Outcome | None, serving: ServingComparison | None) -> dict[str, Any]:
    """Change of TPOT in percent by the traces, and as the benchmark measured it at every load."""
    traced = _change(found.period) if found and found.tpot and found.period else None
    rows = [change for change in serving.changes if change.metric == TPOT] if serving else []
    return {
        "traces_change_percent": traced,
        "serving": [
            {"concurrency": row.concurrency, "change_percent": row.change_percent, "verdict": row.verdict}
            for row in rows
        ],
    }


def render(found: Outcome | None, serving: ServingComparison | None, width: int) -> Group:
    """Return what changed for people."""
    parts: list[Any] = _render_traces(found, width) if found else []
    if serving:
        from traceanalyzer.commands.serving.view import render_comparison

        parts += [Text()] if parts else []
        parts += [Text("Serving", style="bold"), render_comparison(serving, {}, width)]
    return Group(*parts)


def _render_traces(found: Outcome, width: int) -> list[Any]:
    parts: list[Any] = [Text(f"{_line('step', found.step)}: {VERDICTS[found.attribution]}", style="bold")]
    if found.tile:
        parts.append(Text(f"  {_line('kernels with another tile', found.tile)} ({found.tile.verdict})"))
        parts.append(Text(f"  everything else: {_signed(found.rest_ns)} a step"))
    if found.period:
        parts.append(Text(f"  {_line('TPOT' if found.tpot else 'step with the pause before it', found.period)}"))
    rows = [
        (
            short_name(one.name_after or one.name_before or "", NAME_WIDTH),
            one.role,
            duration(one.before_ns),
            duration(one.after_ns),
            _signed(one.delta_ns),
        )
        for one in (*found.changes, *found.hidden)[:MOST_ROWS]
    ]
    if rows:
        columns = ("kernel", "role", "before", "after", "change")
        parts += [Text(), table(columns, rows, name_column=0, width=width)]
    told = [one for one in found.changes if one.tile][:MOST_ROWS]
    return [*parts, *(Text(visible(f"  {one.role}: {one.what}")) for one in told)]


def _line(what: str, one: Measured) -> str:
    change = _change(one)
    share = "" if change is None else f", {change:+.1f} %"
    noise = "" if one.error_ns is None else f" ± {duration(one.error_ns)}"
    return f"{what} {duration(one.before_ns)} -> {duration(one.after_ns)} ({_signed(one.delta_ns)}{noise}{share})"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns))}"
