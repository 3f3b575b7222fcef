"""A file of the input, as the documents of several commands show it."""

from __future__ import annotations

from typing import Annotated, Literal

from traceanalyzer.declare import Part, told


class SourceFile(Part):
    """A file of the input."""

    path: Annotated[str, told("As given; archive!member for a member of an archive.")]
    bytes: Annotated[int, told("Size on disk, of the member as stored.")]
    format: Annotated[Literal["json", "store", "unknown"], told("What the file is.")]
    compression: Annotated[str | None, told("gzip, zip, tar, ...", null="not compressed")]
    events: Annotated[int, told("Events read from it.")]
    recovered_events: Annotated[int | None, told("Events saved from a damaged file.", null="the file was sound")]
    skipped: Annotated[str | None, told("Why the file holds no trace.", null="it was read")]
