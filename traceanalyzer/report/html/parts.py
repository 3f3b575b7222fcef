"""What a page is made of: sections, and the parts that the templates know how to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from traceanalyzer.report.html.figures import Plot
from traceanalyzer.report.html.strip import Strip
from traceanalyzer.report.html.tables import Table


@dataclass(frozen=True)
class Fact:
    """A key figure: a name, a value, and what it rests on."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """Key figures side by side."""

    items: tuple[Fact, ...]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Text:
    """A paragraph; ``css`` is ``note`` for small print."""

    text: str
    css: str = ""
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences, each with a short mark in front where it has one."""

    items: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True)
class Commands:
    """Command lines to run next, each with what it is for."""

    items: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "commands"


@dataclass(frozen=True)
class TablePart:
    """A table."""

    table: Table
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class PlotPart:
    """A figure with its caption."""

    plot: Plot
    caption: str = ""
    kind: ClassVar[str] = "plot"


@dataclass(frozen=True)
class StripPart:
    """A strip of blocks."""

    strip: Strip
    kind: ClassVar[str] = "strip"


@dataclass(frozen=True)
class Folded:
    """Parts that are shown on request."""

    summary: str
    parts: tuple[Part, ...]
    kind: ClassVar[str] = "folded"


Part: TypeAlias = "Facts | Text | Bullets | Commands | TablePart | PlotPart | StripPart | Folded"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; ``children`` are one level deeper."""

    id: str
    title: str
    parts: tuple[Part, ...]
    children: tuple[Section, ...] = field(default=())


def section(identifier: str, title: str, parts: Sequence[Part | None], children: Sequence[Section] = ()) -> Section:
    """Make a section, without the parts that are null."""
    return Section(identifier, title, tuple(part for part in parts if part is not None), tuple(children))


def table(made: Table) -> TablePart | None:
    """A table, or null where it has no rows."""
    return TablePart(made) if made.rows else None


def bullets(items: Sequence[tuple[str, str]]) -> Bullets | None:
    """A list, or null where it is empty."""
    return Bullets(tuple(items)) if items else None
