"""What a page is made of: sections, and the parts that the templates know how to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from traceanalyzer.commands.report.figures import Plot
from traceanalyzer.commands.report.page_tables import Table
from traceanalyzer.commands.report.strip import Strip


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
class Paragraph:
    """A paragraph; ``css`` holds ``note`` for small print, ``screen`` for what is not printed."""

    text: str
    css: str = ""
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Listing:
    """A list: sentences with a short mark in front where they have one, or command lines with what they are for."""

    items: tuple[tuple[str, str], ...]
    kind: Literal["bullets", "commands"] = "bullets"


@dataclass(frozen=True)
class Folded:
    """Parts that are shown on request."""

    summary: str
    parts: tuple[Part, ...]
    kind: ClassVar[str] = "folded"


@dataclass(frozen=True)
class Pair:
    """Two parts side by side where there is room."""

    left: Part
    right: Part
    kind: ClassVar[str] = "pair"


Part: TypeAlias = "Facts | Paragraph | Listing | Table | Plot | Strip | Folded | Pair"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; ``children`` are one level deeper; ``short`` is for navigation."""

    id: str
    title: str
    short: str
    parts: tuple[Part, ...]
    children: tuple[Section, ...] = field(default=())


def section(
    identifier: str,
    title: str,
    parts: Sequence[Part | None],
    children: Sequence[Section] = (),
    short: str | None = None,
) -> Section:
    """Make a section, without the parts that are None."""
    return Section(
        identifier, title, short or title, tuple(part for part in parts if part is not None), tuple(children)
    )


def pair(left: Part | None, right: Part | None) -> Part | None:
    """Two parts side by side, or the one there is."""
    return Pair(left, right) if left is not None and right is not None else left or right


def bullets(items: Sequence[tuple[str, str]]) -> Listing | None:
    """A list, or None where it is empty."""
    return Listing(tuple(items)) if items else None
