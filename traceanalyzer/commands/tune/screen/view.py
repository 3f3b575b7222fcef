"""What ``tune screen`` answers, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.compile.screen import Screen, ScreenedCandidate
from traceanalyzer.commands.tune.screen.result import TuneScreenCandidate, TuneScreenDocument, UntriedValue
from traceanalyzer.declare import part_of
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural

SELDOM = {"group_m": "group", "waves_per_eu": "waves/EU", "matrix_instr_nonkdim": "nonkdim"}
"""Parameters that have a column only where candidates differ in them -> its heading."""

FEWEST_REASONS = 3
"""This many reasons of candidates without a rank are shown however long the table is."""


def document(ranking: Screen) -> TuneScreenDocument:
    """Return the JSON document of ``tune screen``."""
    return part_of(
        TuneScreenDocument,
        ranking,
        target_arch=ranking.device.target.name,
        gpu=ranking.device.name,
        not_tried=[UntriedValue(value=value, reason=reason) for value, reason in ranking.untried.items()],
        candidates=[_candidate(candidate) for candidate in ranking.candidates],
    )


def _candidate(candidate: ScreenedCandidate) -> TuneScreenCandidate:
    facts, score = candidate.facts, candidate.score
    return part_of(
        TuneScreenCandidate,
        candidate,
        config=candidate.config.to_dict(),
        registers=facts.assembly.registers if facts else None,
        spills=facts.assembly.spills if facts else None,
        shared_bytes=facts.shared_bytes if facts else None,
        relative_cost=score.cost if score else None,
        bytes_in_flight=score.bytes_in_flight if score else None,
        waves=score.waves if score else None,
    )


def render(ranking: Screen, limit: int, width: int) -> Group:
    """Return the ranking as text; ``limit`` rows of it, 0: all."""
    ranked = [candidate for candidate in ranking.candidates if candidate.rank is not None]
    shown = ranked[: limit or len(ranked)]
    head = Text(f"{ranking.kernel} {ranking.problem.label} on {ranking.device.name}", style="bold")
    more = [name for name in SELDOM if len({getattr(candidate.config, name) for candidate in ranked}) > 1]
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
    lines += [f"{value} is not tried: {reason}" for value, reason in ranking.untried.items()]
    lines.append("an estimate, not a measurement: measure at least the best three with tune run")
    return Group(head, Text(), rows, *(Text(f"  {line}") for line in lines))


def _unranked(ranking: Screen, most: int) -> list[str]:
    """Return why candidates have no rank, ``most`` reasons of each kind."""
    lines = []
    for fits, what in ((None, "not compiled in time, may still run"), (False, "cannot run")):
        some = [candidate for candidate in ranking.candidates if candidate.rank is None and candidate.fits is fits]
        lines += [f"{what}: {candidate.config.label}: {candidate.reason}" for candidate in some[:most]]
        if len(some) > most:
            lines.append(f"{what}: {plural(len(some), 'candidate')} in all (--json lists them)")
    if any(candidate.fits is None for candidate in ranking.candidates):
        lines.append("more time, or fewer processes on a busy machine: --timeout, --jobs")
    return lines


def _row(candidate: ScreenedCandidate, more: Sequence[str]) -> tuple[str, ...]:
    facts, score, config = candidate.facts, candidate.score, candidate.config
    assert facts is not None
    assert score is not None
    return (
        str(candidate.rank),
        config.tile,
        str(config.num_warps),
        str(config.num_stages),
        *(_number(getattr(config, name)) for name in more),
        _number(facts.assembly.registers),
        _number(facts.assembly.spills),
        f"{facts.shared_bytes / 1024:.1f} KiB",
        "n/a" if candidate.work_ratio is None else f"{candidate.work_ratio:.2f}x",
        f"{score.bytes_in_flight / 1024:,.0f} KiB",
        f"{score.waves:.2f}",
    )


def _number(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"
