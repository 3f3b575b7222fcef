"""The tables of a trace that ``export`` writes to files, and writing each to a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceanalyzer.commands.blocks import view as blocks_view
from traceanalyzer.commands.blocks.result import BLOCK_COLUMNS
from traceanalyzer.commands.export.command import DEFAULT, TABLES
from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.commands.hotspots.result import HotspotRow
from traceanalyzer.commands.hotspots.view import rows_of_ranking
from traceanalyzer.commands.idle.compute import idle
from traceanalyzer.commands.idle.result import IdleGap
from traceanalyzer.commands.roofline.result import RooflineRow
from traceanalyzer.commands.roofline.view import rows_of_roofline
from traceanalyzer.declare import Part, csv_columns, rows_of
from traceanalyzer.discovery import bare_analyses
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.roofline import Request, Roofline, RooflineError
from traceanalyzer.roofline.attempt import roofline_or_reason
from traceanalyzer.roofline.bounds import bounds_by
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.show.frame_table import in_us
from traceanalyzer.trace import Trace

STEP_COLUMNS = (
    *(
        "device",
        "step",
        "label",
        "source",
        "phase",
        "phase_source",
        "phase_confidence",
        "complete",
        "requests",
        "tokens",
        "kv_tokens",
    ),
    *("start_us", "end_us", "span_us", "kernel_sum_us", "busy_us", "idle_before_us"),
    *("events", "kernels", "blocks", "period_blocks", "method", "confidence"),
)
EVENT_COLUMNS = (
    *("device", "stream", "step", "section", "block", "role", "category", "name"),
    *("start_us", "dur_us", "launch_us", "correlation"),
)


@dataclass(frozen=True)
class TableData:
    """A table: its name, its columns in order, and rows that may lack some. Times in µs."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]

    def frame(self) -> pl.DataFrame:
        """Return it as a frame; columns without any value are of text."""
        data = {column: [row.get(column) for row in self.rows] for column in self.columns}
        frame = pl.DataFrame(data, strict=False, infer_schema_length=None)
        return frame.with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.String))


def tables_of(trace: Trace, names: Iterable[str] = DEFAULT, request: Request | None = None) -> list[TableData]:
    """Make the tables asked for; the roofline only where it can be made.

    A phase limits every table but ``gaps``, and those of analyses, to its steps; kernels and roles to the complete
    ones, as ``hotspots`` does.

    Args:
        names: some of TABLES, or of analyses that declare themselves.

    Raises:
        RooflineError: what is stated contradicts the trace, or it has no complete step of the phase.
    """
    asked = set(names)
    stated = request or Request()
    cut = segment(trace).only(phase=stated.phase)
    if stated.phase is not None and not cut.steps["complete"].any():
        raise RooflineError(f"the trace has no complete {stated.phase} step")
    # As in ``hotspots``: without a phase the bounds are of all complete steps, where the roofline is of one phase.
    every_step = replace(stated, every_phase=True)
    held = roofline_or_reason(trace, every_step)[0] if asked & {"kernels", "roles"} else None
    makers: dict[str, Callable[[], TableData | None]] = {
        "steps": lambda: TableData("steps", STEP_COLUMNS, tuple(in_us(cut.steps)[1])),
        "blocks": lambda: TableData("blocks", BLOCK_COLUMNS, tuple(blocks_view.csv_rows([(trace.rank, cut)]))),
        "kernels": lambda: _ranking(trace, "kernel", stated.phase, held),
        "roles": lambda: _ranking(trace, "role", stated.phase, held),
        "gaps": lambda: _table("gaps", IdleGap, rows_of(IdleGap, idle(trace).gaps)),
        "roofline": lambda: _roofline(trace, stated),
        "events": lambda: TableData("events", EVENT_COLUMNS, tuple(_events(cut))),
    }
    made = [makers[name]() for name in TABLES if name in asked]
    return [*(one for one in made if one is not None), *_of_analyses(trace, asked)]


def _of_analyses(trace: Trace, asked: set[str]) -> list[TableData]:
    frames = {name: in_us(one.load()(trace)) for name, one in bare_analyses().items() if name in asked}
    return [TableData(name, columns, tuple(rows)) for name, (columns, rows) in frames.items()]


def _ranking(trace: Trace, by: str, phase: str | None, held: Roofline | None) -> TableData:
    """Rows as ``hotspots`` gives them, by time, with what the roofline of the same steps says of them."""
    ranking = hotspots(trace, by=by, phase=phase)
    bounds = bounds_by(held, by) if held is not None else {}
    return _table(f"{by}s", HotspotRow, rows_of_ranking(ranking.rows, {}, bounds))


def _table(name: str, part: type[Part], rows: Sequence[Part]) -> TableData:
    """Return declared rows with the columns that their CSV has."""
    return TableData(name, csv_columns(part), tuple(msgspec.structs.asdict(row) for row in rows))


def _roofline(trace: Trace, request: Request) -> TableData | None:
    held = roofline_or_reason(trace, request)[0]
    return None if held is None else _table("roofline", RooflineRow, rows_of_roofline(held))


def _events(cut: Segmentation) -> list[dict[str, Any]]:
    events = cut.events.with_columns(category=pl.col("cat").cast(pl.String), name=pl.col("name").cast(pl.String))
    columns = [*EVENT_COLUMNS[:8], "start_ns", "dur_ns", "launch_ns", "correlation"]
    return in_us(events.sort("start_ns", "index").select(columns))[1]


def write_each(
    tables: Sequence[TableData], target: Path, suffix: str, encoded: Callable[[TableData], bytes]
) -> list[Path]:
    """Write every table to a file of its name in a directory; a single one to ``target`` itself if its suffix fits.

    Raises:
        TraceError: several tables are to go to one file, or a file cannot be written.
    """
    if target.suffix.lower() == suffix:
        if len(tables) != 1:
            raise TraceError(str(target), f"{len(tables)} tables do not fit one file; name a directory, or one --table")
        write_whole(target, encoded(tables[0]))
        return [target]
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(str(target), f"cannot be written: {error.strerror or error}") from error
    written = []
    for one in tables:
        path = target / f"{one.name}{suffix}"
        write_whole(path, encoded(one))
        written.append(path)
    return written
