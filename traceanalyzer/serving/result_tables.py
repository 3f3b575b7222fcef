"""Tables of results: CSV in any dialect, summaries of sweeps, and Markdown tables from articles."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from traceanalyzer.problems import TraceError
from traceanalyzer.serving.metrics import canonical, column
from traceanalyzer.serving.records import KINDS, from_object, from_row
from traceanalyzer.serving.serving_result import ServingResult

DELIMITERS = ",;\t"
DECIMAL_COMMA = re.compile(r"-?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
RULE = re.compile(r"[|\s:+-]*-[|\s:+-]*")


def from_csv(text: str, source: str) -> list[ServingResult]:
    """Read every row of a table with a known heading; an empty list without one."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 2:
        return []
    delimiter = max(DELIMITERS, key=lines[0].count)
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    return _results(_plain_numbers(rows, decimal_comma=delimiter == ";"), source)


def from_markdown(text: str, source: str) -> list[ServingResult]:
    """Read every table drawn with ``|``; of several, each gets its number as the setting ``table``."""
    tables = [rows for rows in _pipe_tables(text) if _results(rows, source)]
    if len(tables) == 1:
        return _results(tables[0], source)
    return [
        result
        for number, rows in enumerate(tables, 1)
        for result in _results(_numbered(rows, number), source, prefix=f"table {number}, ")
    ]


def _numbered(rows: list[list[str]], number: int) -> list[list[str]]:
    return [["table", *rows[0]], *([str(number), *row] for row in rows[1:])]


def _results(rows: list[list[str]], source: str, prefix: str = "") -> list[ServingResult]:
    heading = [cell.strip() for cell in rows[0]]
    if not any(column(cell) for cell in heading):
        return []
    _refuse_ambiguous(heading, rows[1:], source)
    read = from_object if _is_of_a_benchmark(heading) else from_row
    several = len(rows) > 2 or prefix
    results = [
        read(dict(zip(heading, row, strict=False)), source, f"{prefix}row {number}" if several else None)
        for number, row in enumerate(rows[1:], 1)
    ]
    return [result for result in results if result is not None]


def _is_of_a_benchmark(heading: list[str]) -> bool:
    """Whether a benchmark wrote the headings; a heading in other words makes it another table."""
    full = {canonical(cell) for cell in heading}
    others = any(known and known.key != canonical(cell) for cell in heading if (known := column(cell)))
    return not others and any(key in full for key in KINDS[0][1])


def _refuse_ambiguous(heading: list[str], rows: list[list[str]], source: str) -> None:
    """Raise TraceError if two columns of one name have different figures."""
    first: dict[str, int] = {}
    for at, cell in enumerate(heading):
        before = first.setdefault(canonical(cell), at)
        if cell and before != at and any(row[before] != row[at] for row in rows if len(row) > at):
            raise TraceError(source, f"has two columns '{cell}' that differ; rename or remove one")


def _pipe_tables(text: str) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.count("|") >= 2:
            if not RULE.fullmatch(line):
                rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            if len(rows) > 1:
                yield _plain_numbers(rows, decimal_comma=False)
            rows = []


def _plain_numbers(rows: list[list[str]], *, decimal_comma: bool) -> list[list[str]]:
    """Return cells whose numbers have a decimal point and no grouping.

    ``2,400`` is two thousand four hundred, unless the table has decimal commas or a cell such as ``0,06``.
    """
    by_comma = decimal_comma or any(
        DECIMAL_COMMA.fullmatch(cell.strip()) and not GROUPED.fullmatch(cell.strip()) for row in rows for cell in row
    )
    plain = _decimal_point if by_comma else _ungrouped
    return [rows[0], *([plain(cell) for cell in row] for row in rows[1:])]


def _decimal_point(cell: str) -> str:
    return cell.replace(".", "").replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def _ungrouped(cell: str) -> str:
    return cell.replace(",", "") if GROUPED.fullmatch(cell.strip()) else cell
