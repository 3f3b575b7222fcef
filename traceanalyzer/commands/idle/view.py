"""Gaps on the GPU as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from traceanalyzer.commands.idle.compute import Idle
from traceanalyzer.commands.idle.result import IdleClass, IdleDevice, IdleDocument, IdleEnding, IdleGap, IdleHost
from traceanalyzer.declare import rows_of
from traceanalyzer.show.part_table import part_table
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import cut_middle, duration_us, percent, plural

EXPLAINED = {
    "host": "launched late, the host was busy",
    "device": "queued on the GPU",
    "unknown": "the launch was not recorded",
}
"""Causes in words."""

SPARE = ("longest_us", "place", "cause")
"""Columns that a narrow terminal does without, the first to go first."""


def document(waits: Idle) -> IdleDocument:
    """Return the JSON document of ``idle``."""
    return IdleDocument(
        timelines=rows_of(IdleDevice, waits.totals),
        classes=rows_of(IdleClass, waits.by_cause),
        endings=rows_of(IdleEnding, waits.by_kernel),
        gaps=rows_of(IdleGap, waits.gaps),
        host=rows_of(IdleHost, waits.host),
        warnings=list(waits.warnings),
    )


def render(answer: IdleDocument, limit: int, width: int, first: Sequence[str] = ()) -> Group:
    """Return totals, the gaps by place and cause, and what the host did meanwhile; ``limit`` rows, 0 for all.

    ``first`` is what to know before: that a graph capture or training was recorded.
    """
    before = [Text(line, style="bold") for line in first]
    if not answer.timelines:
        return Group(*before, *(Text(warning.message) for warning in answer.warnings))
    parts: list[Any] = [*before, *(Text(_device(one), style="bold") for one in answer.timelines)]
    if not answer.classes:
        return Group(*parts, Text("  no gaps"))
    rows = [
        (f"{one.place}: {EXPLAINED[one.cause]}", f"{one.gaps:,}", duration_us(one.total_us)) for one in answer.classes
    ]
    parts += [Text(), table(("where and why", "gaps", "total"), rows, name_column=0, width=width, shorten=cut_middle)]
    if answer.host:
        heading = Text("What the host did while the GPU waited for it", style="bold")
        parts += [Text(), heading, _host(answer.host[: limit or None], width)]
    parts += [Text(), Text(f"What ends the {plural(len(answer.gaps), 'gap')}", style="bold")]
    names = ("after", "place", "cause", "gaps", "longest_us", "total_us")
    parts.append(part_table(answer.endings[: limit or None], names, width=width, spare=SPARE))
    if rest := answer.endings[limit:] if limit else []:
        more = f"{plural(len(rest), 'more row')} with {duration_us(sum(one.total_us for one in rest))}"
        parts.append(Text(f"  and {more} (--limit 0 shows all)"))
    return Group(*parts)


def _device(one: IdleDevice) -> str:
    if one.idle_us is None:
        return f"device {one.device}: idle time unknown: kernels were not recorded"
    share = one.idle_us / one.span_us if one.span_us else None
    return f"device {one.device}: idle {duration_us(one.idle_us)} of {duration_us(one.span_us)} ({percent(share)})"


def _host(events: Sequence[IdleHost], width: int) -> Table:
    longest = max(width // 4, 20)
    rows = [msgspec.structs.replace(one, inside=cut_middle(one.inside or "", longest)) for one in events]
    names, absent = ("name", "inside", "place", "total_us"), {"name": "(no host event recorded)"}
    return part_table(rows, names, width=width, spare=("inside", "place"), shorten=cut_middle, unknown=absent)
