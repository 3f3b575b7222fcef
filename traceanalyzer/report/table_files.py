"""The tables of a trace as files: CSV, Parquet, and one Excel workbook."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from traceanalyzer.analysis.hotspots import hotspots
from traceanalyzer.analysis.idle import idle
from traceanalyzer.analysis.roofline import Request, Roofline
from traceanalyzer.analysis.roofline.bounds import bounds_by
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.report import blocks
from traceanalyzer.report import hotspots as hotspot_report
from traceanalyzer.report import idle as idle_report
from traceanalyzer.report import roofline as roofline_report
from traceanalyzer.report.attempt import roofline_or_reason
from traceanalyzer.report.csv import to_csv
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

NAMES = ("steps", "blocks", "kernels", "roles", "gaps", "roofline", "events")
DEFAULT = NAMES[:-1]
"""Tables written without being asked for; ``events`` has a row a kernel."""

STEP_COLUMNS = (
    *("device", "step", "label", "source", "phase", "complete", "requests", "tokens", "kv_tokens"),
    *("start_us", "end_us", "span_us", "kernel_sum_us", "busy_us", "idle_before_us"),
    *("events", "kernels", "blocks", "period_blocks", "method", "confidence"),
)
EVENT_COLUMNS = (
    *("device", "stream", "step", "section", "block", "role", "category", "name"),
    *("start_us", "dur_us", "launch_us", "correlation"),
)
SHEET_ROWS = 1_048_575
"""Rows below the header that a worksheet can hold."""


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

    Args:
        trace: one rank's trace.
        names: some of NAMES.
        request: what the user states of model, GPU and workload.

    Raises:
        RooflineError: what is stated contradicts the trace.
    """
    wanted = [name for name in NAMES if name in set(names)]
    held = (
        roofline_or_reason(trace, request or Request())[0] if {"kernels", "roles", "roofline"} & set(wanted) else None
    )
    makers = {
        "steps": lambda: TableData("steps", STEP_COLUMNS, tuple(_in_us(segment(trace).steps))),
        "blocks": lambda: TableData(
            "blocks", blocks.CSV_COLUMNS, tuple(blocks.csv_rows([(trace.rank, segment(trace))]))
        ),
        "kernels": lambda: _ranking(trace, "kernel", held),
        "roles": lambda: _ranking(trace, "role", held),
        "gaps": lambda: TableData("gaps", idle_report.CSV_COLUMNS, tuple(idle_report.document(idle(trace))["gaps"])),
        "events": lambda: TableData("events", EVENT_COLUMNS, tuple(_events(trace))),
    }
    tables = [makers[name]() for name in wanted if name != "roofline"]
    if held is not None and "roofline" in wanted:
        rows = tuple(roofline_report.csv_rows(held))
        tables.append(TableData("roofline", roofline_report.CSV_COLUMNS, rows))
    return tables


def _ranking(trace: Trace, by: str, held: Roofline | None) -> TableData:
    found = hotspots(trace, by=by)
    bounds = bounds_by(held, by) if held is not None else {}
    rows = hotspot_report.document(found, [], {}, bounds)["rows"]
    return TableData(f"{by}s", hotspot_report.CSV_COLUMNS, tuple(rows))


def _in_us(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows with every ``_ns`` column as ``_us``."""
    return [
        {
            (f"{key[:-3]}_us" if key.endswith("_ns") else key): (
                value / 1000 if key.endswith("_ns") and value is not None else value
            )
            for key, value in row.items()
        }
        for row in frame.iter_rows(named=True)
    ]


def _events(trace: Trace) -> list[dict[str, Any]]:
    events = segment(trace).events.with_columns(
        category=pl.col("cat").cast(pl.String), name=pl.col("name").cast(pl.String)
    )
    columns = [*EVENT_COLUMNS[:8], "start_ns", "dur_ns", "launch_ns", "correlation"]
    return _in_us(events.sort("start_ns", "index").select(columns))


def write_csv(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a CSV file a table into a directory; a single table goes to ``target`` itself if that ends in .csv.

    Raises:
        TraceError: a file cannot be written.
    """
    return _write(tables, target, ".csv", lambda one: to_csv(one.columns, one.rows).encode("utf-8", "replace"))


def write_parquet(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write a Parquet file a table into a directory; a single table goes to ``target`` itself if that ends in .parquet.

    Raises:
        TraceError: a file cannot be written.
    """

    def encoded(one: TableData) -> bytes:
        out = io.BytesIO()
        one.frame().write_parquet(out)
        return out.getvalue()

    return _write(tables, target, ".parquet", encoded)


def _write(tables: Sequence[TableData], target: Path, suffix: str, encoded: Any) -> list[Path]:
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


def write_xlsx(tables: Sequence[TableData], target: Path) -> list[Path]:
    """Write one workbook with a sheet a table; text is text, whatever it looks like.

    Raises:
        TraceError: XlsxWriter is not installed, a table is too long for a sheet, or the file cannot be written.
    """
    try:
        xlsxwriter = import_module("xlsxwriter")
    except ImportError:
        raise TraceError(str(target), "writing .xlsx needs XlsxWriter: pip install 'traceanalyzer[xlsx]'") from None
    out = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    with xlsxwriter.Workbook(out, options) as book:
        heading = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        number = book.add_format({"num_format": "#,##0.0##"})
        for one in tables:
            if len(one.rows) > SHEET_ROWS:
                raise TraceError(str(target), f"{len(one.rows):,} rows of {one.name} do not fit a sheet; use parquet")
            _sheet(book.add_worksheet(one.name), one, heading, number)
    write_whole(target, out.getvalue())
    return [target]


def _sheet(sheet: Any, one: TableData, heading: Any, number: Any) -> None:
    sheet.freeze_panes(1, 0)
    for at, column in enumerate(one.columns):
        sheet.write_string(0, at, column, heading)
        longest = max((len(str(row.get(column) or "")) for row in one.rows), default=0)
        sheet.set_column(at, at, min(max(len(column), longest, 6) + 1, 60))
    for line, row in enumerate(one.rows, start=1):
        for at, column in enumerate(one.columns):
            value = row.get(column)
            if isinstance(value, bool):
                sheet.write_boolean(line, at, value)
            elif isinstance(value, int | float):
                sheet.write_number(line, at, value, number if isinstance(value, float) else None)
            elif value is not None:
                sheet.write_string(line, at, _cell_text(value))
    if one.rows:
        sheet.autofilter(0, 0, len(one.rows), len(one.columns) - 1)


def _cell_text(value: Any) -> str:
    """Text that XML can hold, no longer than a cell can be."""
    text = str(value).encode("utf-8", "replace").decode()
    return "".join(c if c in "\t\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:32_000]
