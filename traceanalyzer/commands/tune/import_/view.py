"""What ``tune import`` read, as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_config
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural

LONGEST_CONFIG = 60
"""Characters of a configuration that a table has room for beside the other columns at a width of 100."""


def render(sweep: Sweep, limit: int, width: int) -> Group:
    """Return the first ``limit`` points as a table."""
    rows = [
        (
            "n/a" if point.m is None else str(point.m),
            "n/a" if point.concurrency is None else str(point.concurrency),
            _shortened(describe_config(point.config)),
            str(len(point.samples_ms)),
            _median(point),
        )
        for point in sweep.points[:limit]
    ]
    head = Text(f"{plural(len(sweep.points), 'point')} in {sweep.source} ({sweep.format})", style="bold")
    columns = ("m", "conc", "config", "samples", "median")
    parts: list[Any] = [head, Text(), table(columns, rows, name_column=None, width=width)]
    if len(sweep.points) > limit:
        parts.append(Text(f"  and {plural(len(sweep.points) - limit, 'more point')} (--limit 0 shows all)"))
    return Group(*parts)


def _median(point: SweepPoint) -> str:
    if point.median_ms is not None:
        return f"{point.median_ms:.4f} ms"
    # Files of finished configurations hold no timings.
    return "not timed" if point.reason is None else "failed"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CONFIG else f"{text[: LONGEST_CONFIG - 3]}..."
