"""columns.md: the columns of the library's frames and of CSV output."""

from __future__ import annotations

import io
import tokenize
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from docs.generate.markdown import join, note, table
from traceanalyzer import declare
from traceanalyzer.declare import Column, Part, members, parts_of
from traceanalyzer.show.schema import documents

HEAD = """
# Columns

## Frames of the library

Polars frames. Times are Int64 nanoseconds, means Float64; names end in the unit. Unknown is null.
"""

CSV_HEAD = """
## CSV output

`--csv` prints a header line and one row per line; an empty field is unknown. Columns are in this order. Times are µs.
`export csv`, `export parquet` and `export xlsx` write the same tables.
"""

UNITS = {"_ns": "ns", "_us": "µs", "_ms": "ms", "_percent": "%", "share": "1 is all", "bytes": "bytes"}


class Declared(NamedTuple):
    """Where a frame's columns are declared, and what gives such a frame."""

    title: str
    module: str
    name: str


FRAMES = (
    Declared("Trace.events", "read.event_schema", "EVENT_SCHEMA"),
    Declared("Segmentation.events: further columns", "segment.segmentation_result", "PLACEMENT_SCHEMA"),
    Declared("steps, Segmentation.steps", "segment.segmentation_result", "STEP_SCHEMA"),
    Declared("blocks, Segmentation.blocks", "segment.segmentation_result", "BLOCK_SCHEMA"),
)
"""Every frame of a result, in the order of the page."""


EXPORTED = (
    ("export: steps", "STEP_COLUMNS", ("segment.segmentation_result", "STEP_SCHEMA")),
    (
        "export: events",
        "EVENT_COLUMNS",
        ("segment.segmentation_result", "PLACEMENT_SCHEMA"),
        ("read.event_schema", "EVENT_SCHEMA"),
    ),
)
"""Tables that only ``export`` writes: frames with their times in µs."""

MORE = {
    "blocks --csv": "Then one column per role, `ROLE_us`: its kernel time in the block, empty where it does not occur.",
    "serving show --csv": "Then one column per metric that occurs, by the key of vllm bench, which contains the unit.",
}


def page() -> str:
    """Return the page's text."""
    parts = [note("the declarations in the code, and docs/schemas"), HEAD.strip()]
    for frame in FRAMES:
        declared = columns(frame.module, frame.name)
        rows = [(f"`{name}`", type_, unit(name), told) for name, (type_, told) in declared.items()]
        parts += [f"### {frame.title}", table(("column", "type", "unit", "meaning"), rows)]
    for title, part in parts_with("frame_title").items():
        rows = [
            (f"`{c.frame_name}`", c.dtype or "", unit(c.frame_name), _meaning(c))
            for c in declare.columns(part)
            if c.dtype
        ]
        parts += [f"### {title}", table(("column", "type", "unit", "meaning"), rows)]
    parts.append(CSV_HEAD.strip())
    for title, part in parts_with("csv_title").items():
        told = [(f"`{c.name}`", _type_of(c), c.unit, _meaning(c, "Empty")) for c in declare.columns(part) if c.csv]
        more = [MORE[title]] if title in MORE else []
        parts += [f"### {title}", table(("column", "type", "unit", "meaning"), told), *more]
    for title, name, *sources in EXPORTED:
        known = {key: value for source in sources for key, value in columns(*source).items()}
        rows = [(f"`{c}`", *exported(c, known)) for c in getattr(_module("commands.export.tables"), name)]
        parts += [f"### {title}", table(("column", "type", "unit", "meaning"), rows)]
    return join(*parts)


def parts_with(name: str) -> dict[str, type[Part]]:
    """Return the declared parts that are the rows of a frame or of a CSV table, by its title.

    Args:
        name: the ClassVar that names it, ``frame_title`` or ``csv_title``.
    """
    modules = [import_module(document.__module__) for document in documents().values()]
    # A frame may have rows that no document holds.
    values = [value for module in modules for value in vars(module).values()]
    known = [value for value in values if isinstance(value, type) and issubclass(value, Part)]
    parts = dict.fromkeys(part for one in known for part in parts_of(one))
    titles = {part: vars(part)[name] for part in parts if name in vars(part)}
    return {title: part for part, title in sorted(titles.items(), key=lambda pair: str(pair[1]))}


def _meaning(column: Column, without: str = "Null") -> str:
    return f"{column.meaning} {without}: {column.null}." if column.null else column.meaning


def _type_of(column: Column) -> str:
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return " or ".join(dict.fromkeys(names.get(one, "string") for one in members(column.type) if one is not type(None)))


def columns(module: str, name: str) -> dict[str, tuple[str, str]]:
    """Return the columns that a module declares: name -> (type, meaning).

    The meaning is the comment at the end of the column's line; empty where there is none.
    """
    loaded = _module(module)
    assert loaded.__file__ is not None
    declared = getattr(loaded, name)
    told = _comments(Path(loaded.__file__), name)
    return {column: (str(dtype), told.get(column, "")) for column, dtype in declared.items()}


def _module(name: str) -> Any:
    return import_module(f"traceanalyzer.{name}")


def _comments(path: Path, name: str) -> dict[str, str]:
    """Return the comments behind the keys of a dictionary that a module assigns to ``name``."""
    found: dict[str, str] = {}
    inside, key = False, None
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME and token.start[1] == 0:
            inside = token.string == name
        elif inside and token.type == tokenize.STRING and token.line.lstrip().startswith(token.string):
            key = token.string.strip("\"'")
        elif inside and token.type == tokenize.COMMENT and key is not None:
            found[key] = token.string.lstrip("# ")
            key = None
    return found


def exported(column: str, known: dict[str, tuple[str, str]]) -> tuple[str, str, str]:
    """Return type, unit and meaning of a column of an exported frame, whose times are µs.

    Raises:
        KeyError: nothing tells of the column.
    """
    source = {"category": "cat"}.get(column, column)
    in_ns = f"{source[:-3]}_ns" if source.endswith("_us") else source
    type_, told = known[in_ns]
    return "Float64" if in_ns != source else type_.replace("Categorical", "String"), unit(column), told


def unit(column: str) -> str:
    """Return the unit that a column's name ends in; empty for counts and text."""
    return next((unit for ending, unit in UNITS.items() if column.endswith(ending)), "")
