"""What ``tune screen`` answers, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.screen.result import TuneScreenCandidate, TuneScreenDocument
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural

SELDOM = {"group_m": "group", "waves_per_eu": "waves/EU", "matrix_instr_nonkdim": "nonkdim"}
"""Parameters that have a column only where candidates differ in them -> its heading."""

FEWEST_REASONS = 3
"""This many reasons of candidates without a rank are shown however long the table is; chosen, not fitted."""


def render(ranking: TuneScreenDocument, limit: int, width: int) -> Group:
    """Return the ranking as text; ``limit`` rows of it, 0: all."""
    ranked = [candidate for candidate in ranking.candidates if candidate.rank is not None]
    shown = ranked[: limit or len(ranked)]
    head = Text(f"{ranking.kernel} {ranking.problem.label} on {ranking.gpu}", style="bold")
    more = [name for name in SELDOM if len({candidate.config[name] for candidate in ranked}) > 1]
    columns = ("rank", "tile", "warps", "stages", *(SELDOM[name] for name in more))
    columns += ("regs", "spills", "shared", "work", "in flight", "waves")
    rows = table(columns, [_row(candidate, more) for candidate in shown], name_column=None, width=width)
    lines = []
    if len(ranked) > len(shown):
        lines.append(f"and {plural(len(ranked) - len(shown), 'more candidate')} (--limit 0 shows all)")
    lines += _unranked(ranking, max(FEWEST_REASONS, (limit or len(ranking.candidates)) - len(ranked)))
    if ranking.not_compiled:
        left = plural(ranking.not_compiled, "candidate")
        lines.append(f"{left} not compiled: less promising by the tile alone (--compile)")
    lines += [f"{one.value} is not tried: {one.reason}" for one in ranking.not_tried]
    lines.append("an estimate, not a measurement: measure at least the best three with tune run")
    return Group(head, Text(), rows, *(Text(f"  {line}") for line in lines))


def _unranked(ranking: TuneScreenDocument, most: int) -> list[str]:
    """Return why candidates have no rank, ``most`` reasons of each kind."""
    lines = []
    for fits, what in ((None, "not compiled in time, may still run"), (False, "cannot run")):
        some = [candidate for candidate in ranking.candidates if candidate.rank is None and candidate.fits is fits]
        lines += [f"{what}: {candidate.launch.label}: {candidate.reason}" for candidate in some[:most]]
        if len(some) > most:
            lines.append(f"{what}: {plural(len(some), 'candidate')} in all (--json lists them)")
    if any(candidate.fits is None for candidate in ranking.candidates):
        lines.append("more time, or fewer processes on a busy machine: --timeout, --jobs")
    return lines


def _row(candidate: TuneScreenCandidate, more: Sequence[str]) -> tuple[str, ...]:
    config = candidate.launch
    return (
        _number(candidate.rank),
        config.tile,
        _number(config.num_warps),
        _number(config.num_stages),
        *(_number(getattr(config, name)) for name in more),
        _number(candidate.registers),
        _number(candidate.spills),
        _number(candidate.shared_bytes, "{:.1f} KiB", 1024),
        _number(candidate.work_ratio, "{:.2f}x"),
        _number(candidate.bytes_in_flight, "{:,.0f} KiB", 1024),
        _number(candidate.waves, "{:.2f}"),
    )


def _number(value: float | None, form: str = "{:,}", unit: int = 1) -> str:
    return "n/a" if value is None else form.format(value if unit == 1 else value / unit)
