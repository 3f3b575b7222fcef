"""A result declares itself once; JSON, JSON Schema, CSV, frames, tables and the reference are made of the declaration.

    class Row(Part):
        name: Annotated[str, told("Kernel name.")]
        total_us: Annotated[float, told("Sum of the durations.")]
        share: Annotated[float | None, told("Of the whole.", null="nothing ran")]

    class Answer(Document, tag="traceanalyzer/answer/1"):
        \"\"\"What the answer is.\"\"\"

        command: ClassVar[str] = "answer"
        rows: Annotated[list[Row], told("By time.")]

A field's unit follows from the end of its name (``_us``, ``_bytes``, ``share``, ...). In frames, times are Int64
nanoseconds in columns that end in ``_ns``; documents hold the same in µs (``_us``) or ms (``_ms``).
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

if TYPE_CHECKING:
    import polars as pl

Basis = Literal["measured", "derived", "modelled", "assumed"]
UNITS = {
    "_us": "µs",
    "_ms": "ms",
    "_ns": "ns",
    "_percent": "%",
    "_gbps": "GB/s",
    "tflops": "10^12 operations/s",
    "bytes": "bytes",
    "share": "share, 1 is all",
}
"""How a name ends, and the unit that this tells."""

TIMES = {"_us": 1e3, "_ms": 1e6}
"""Endings of times in documents, and how many ns they are; a frame's column of the same time ends in ``_ns``."""


if TYPE_CHECKING:
    # Type checkers ask for ``frozen=True`` at every subclass; msgspec passes it on.
    class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
        """A part of a document."""

        def __hash__(self) -> int: ...
else:

    class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """A part of a document: an object whose fields are declared with ``told``.

        A ClassVar ``frame_title`` names the library's frame that has such rows (``Hotspots.rows``), ``csv_title`` the
        output that has them as CSV (``hotspots --csv``): the reference lists both.
        """


class Document(Part, tag_field="schema", tag=str):
    """What a command prints with ``--json``; its ``tag`` is the document's ``schema``.

    Its docstring says what it is, its ClassVar ``command`` which command prints it, and ``page`` the name of its schema
    file, where that is not the word of its tag.
    """


P = TypeVar("P", bound=Part)


@dataclass(frozen=True)
class Column:
    """What is declared of a field.

    Attributes:
        name: of the field.
        written: its key in JSON, another one only where the key is a word of Python.
        type: as annotated, without what is declared here.
        meaning: what the value is.
        unit: of the value; empty for counts and text.
        null: when the value is unknown or absent; empty where it never is.
        basis: what a figure rests on, where that is not plain.
        heading: of the column in a terminal table.
        csv: whether ``--csv`` has the column.
        dtype: name of the Polars type in frames of such rows; None where they lack the column.
        aggregate: how a ranking computes it from the kernels of a row; None where it does not.
    """

    name: str
    written: str
    type: Any
    meaning: str
    unit: str
    null: str
    basis: Basis | None
    heading: str
    csv: bool
    dtype: str | None
    aggregate: pl.Expr | None

    @property
    def frame_name(self) -> str:
        """The column's name in frames, where times are ns."""
        stem, scale = _time(self.name)
        return self.name if scale is None else f"{stem}_ns"

    @property
    def nullable(self) -> bool:
        """Whether the value may be null."""
        return type(None) in get_args(self.type)


class InFrame:
    """A field as a column of frames.

    Args:
        dtype: name of the Polars type; None for the one that follows from the field: Int64 ns for times, else its own.
        aggregate: how a ranking computes it from the kernels of a row; None where it does not.
    """

    # No dataclass: typing compares what annotations hold, and expressions do not compare to true or false.
    def __init__(self, dtype: str | None = None, aggregate: pl.Expr | None = None) -> None:
        self.dtype = dtype
        self.aggregate = aggregate


PLAIN = InFrame()


def told(
    meaning: str,
    *,
    null: str = "",
    unit: str | None = None,
    basis: Basis | None = None,
    heading: str | None = None,
    csv: bool = True,
    frame: InFrame | None = PLAIN,
) -> msgspec.Meta:
    """Say what a field is; see ``Column``. Unit and heading follow from the field's name where they are not given."""
    kept = {"meaning": meaning, "null": null, "unit": unit, "basis": basis, "heading": heading}
    return msgspec.Meta(description=meaning, extra={**kept, "csv": csv, "frame": frame})


@cache
def columns(part: type[Part]) -> tuple[Column, ...]:
    """Return what a part declares, field by field in its order.

    Raises:
        TypeError: a field is declared without ``told``.
    """
    hints = get_type_hints(part, include_extras=True)
    names = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    return tuple(_column(part, name, written, hints[name]) for name, written in names)


def _column(part: type[Part], name: str, written: str, hint: Any) -> Column:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{part.__name__}.{name} is not declared with told()")
    type_, meta = get_args(hint)[:2]
    extra: dict[str, Any] = meta.extra
    unit = extra["unit"]
    if unit is None:
        unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
    heading = extra["heading"] or _time(name)[0].replace("_", " ")
    frame: InFrame | None = extra["frame"]
    kept = {key: extra[key] for key in ("meaning", "null", "basis", "csv")} | {"unit": unit, "heading": heading}
    kept["dtype"] = None if frame is None else frame.dtype or _dtype(name, type_)
    kept["aggregate"] = None if frame is None else frame.aggregate
    return Column(name=name, written=written, type=type_, **kept)


def _time(name: str) -> tuple[str, float | None]:
    """Return a name without the ending of a time, and how many ns its unit is; None for what is not a time."""
    ending = name[-3:]
    return (name[:-3], TIMES[ending]) if ending in TIMES else (name, None)


def _dtype(name: str, type_: Any) -> str:
    kinds = [kind for kind in members(type_) if kind is not type(None)]
    if _time(name)[1] is not None:
        return "Int64"
    plain = {str: "String", int: "Int64", float: "Float64", bool: "Boolean"}
    return plain.get(kinds[0], "String") if len(kinds) == 1 else "String"


def members(type_: Any) -> tuple[Any, ...]:
    """Return the members of a union; a type that is none is its own only member."""
    return get_args(type_) if get_origin(type_) in {Union, types.UnionType} else (type_,)


def csv_columns(part: type[Part]) -> tuple[str, ...]:
    """Return the names of the CSV columns, in order."""
    return tuple(column.name for column in columns(part) if column.csv)


def frame_schema(part: type[Part]) -> dict[str, pl.DataType]:
    """Return the columns of a frame whose rows are such parts: name -> Polars type, times as ns."""
    return {one.frame_name: _polars(one.dtype) for one in columns(part) if one.dtype is not None}


def _polars(name: str) -> pl.DataType:
    """Return a Polars type by its name, such as ``Int32`` or ``List(Int32)``."""
    import polars as pl

    outer, _, inner = name.removesuffix(")").partition("(")
    kind: Any = getattr(pl, outer)
    made: pl.DataType = kind(_polars(inner)) if inner else kind()
    return made


def rows_of(part: type[P], frame: pl.DataFrame, /, **given: Any) -> list[P]:
    """Make a part of each row of a frame; its times are ns there, and µs or ms in the part.

    Args:
        given: fields that are the same for all rows.
    """
    sources = [(name, *_source(name, frame.columns)) for name in part.__struct_fields__ if name not in given]
    return [
        part(**given, **{name: _scaled(row[source], scale) for name, source, scale in sources})
        for row in frame.iter_rows(named=True)
    ]


def part_of(part: type[P], source: Any, /, **given: Any) -> P:
    """Make a part of an object's attributes, or of a mapping's values: those of the fields' names.

    Times may be ns there, under a name that ends in ``_ns``. Where a field is a part, or a list of parts, what it is
    made of is turned into parts likewise.

    Args:
        given: fields that the source lacks or names otherwise.
    """
    mapping = isinstance(source, Mapping)
    kind: Any = type(source)
    known = source if mapping else _attributes(kind)
    made = dict(given)
    for column in columns(part):
        if column.name not in given:
            name, scale = _source(column.name, known)
            value = source[name] if mapping else getattr(source, name)
            made[column.name] = _converted(column.type, _scaled(value, scale))
    return part(**made)


@cache
def _attributes(kind: Any) -> frozenset[str]:
    """Return the names of the fields and properties of a class."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else getattr(kind, "__struct_fields__", ())
    properties = [name for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, property)]
    return frozenset((*names, *properties))


def _source(name: str, known: Any) -> tuple[str, float | None]:
    """Return under which name a source holds a field, and what it is divided by."""
    stem, scale = _time(name)
    if name in known or scale is None:
        return name, None
    return f"{stem}_ns", scale


def _scaled(value: Any, scale: float | None) -> Any:
    return value if value is None or scale is None else value / scale


def _converted(type_: Any, value: Any) -> Any:
    """Return a value as its field has it: what is to be a part is made one."""
    if value is None or isinstance(value, Part):
        return value
    for kind in members(type_):
        if isinstance(kind, type) and issubclass(kind, Part):
            return part_of(kind, value)
        origin, inner = get_origin(kind), get_args(kind)
        if origin in {list, tuple} and not isinstance(value, str):
            return [_converted(inner[0], one) for one in value]
        if origin is dict and isinstance(value, Mapping):
            return {str(key): _converted(inner[1], one) for key, one in value.items()}
    return value


def plain(document: Part) -> dict[str, Any]:
    """Return a document as what JSON is written of."""
    made: dict[str, Any] = msgspec.to_builtins(document)
    return made


def parts_of(part: type[Part]) -> Iterator[type[Part]]:
    """Yield a part and every part within it, each once, outer ones first."""
    seen: dict[type[Part], None] = {}
    waiting: list[Any] = [part]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, type) and issubclass(one, Part):
            if one not in seen:
                seen[one] = None
                waiting += [column.type for column in columns(one)]
        else:
            waiting += get_args(one)
    yield from seen
