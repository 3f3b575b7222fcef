"""An ingested trace on disk: Parquet files by group of categories and a JSON file of metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import polars as pl

from traceanalyzer.problems import TraceError
from traceanalyzer.read.event_schema import EVENT_SCHEMA, GROUPS, SCHEMA_VERSION, group_of
from traceanalyzer.read.metadata import TraceMetadata
from traceanalyzer.read.scratch import check_readable
from traceanalyzer.read.window import INDEX_BITS

METADATA_FILE = "trace.json"


class _Version(msgspec.Struct):
    """What is read first: other versions may have other keys."""

    schema: int


class Manifest(msgspec.Struct):
    """Content of the metadata file.

    Attributes:
        files: size of each event file, by name.
    """

    schema: int
    metadata: TraceMetadata
    window_starts: list[int]
    files: dict[str, int]


@dataclass(frozen=True)
class Store:
    """One rank's ingested trace in a directory.

    Attributes:
        directory: where it lies.
        metadata: what the file says about itself.
        window_starts: position in the event list of the first event of each window.
    """

    directory: Path
    metadata: TraceMetadata
    window_starts: tuple[int, ...] = (0,)

    @classmethod
    def read(cls, directory: Path) -> Store:
        """Open the store in a directory written earlier.

        Raises:
            TraceError: it is damaged, or was written by another version.
        """
        try:
            check_readable(directory)
            text = (directory / METADATA_FILE).read_bytes()
            if msgspec.json.decode(text, type=_Version).schema != SCHEMA_VERSION:
                raise TraceError(
                    str(directory), "the store was written by another version of traceanalyzer: ingest the trace again"
                )
            manifest = msgspec.json.decode(text, type=Manifest)
            whole = all((directory / name).stat().st_size == size for name, size in manifest.files.items())
        except (OSError, msgspec.MsgspecError) as error:
            raise TraceError(str(directory), f"not a readable store: {error}") from error
        if not whole:
            raise TraceError(str(directory), "the store is damaged: ingest the trace again")
        return cls(directory, manifest.metadata, tuple(manifest.window_starts))

    def renamed(self, old: str, new: str) -> Store:
        """Return the same store, its source named as given now."""
        source = self.metadata.source.renamed(old, new)
        warnings = tuple(warning.at(source.path) for warning in self.metadata.warnings)
        return replace(self, metadata=replace(self.metadata, source=source, warnings=warnings))

    def write_manifest(self) -> None:
        """Write the metadata beside the event files."""
        files = {path.name: path.stat().st_size for path in self.directory.glob("*.parquet")}
        manifest = Manifest(SCHEMA_VERSION, self.metadata, list(self.window_starts), files)
        (self.directory / METADATA_FILE).write_bytes(msgspec.json.encode(manifest))

    def scan(self, categories: Iterable[str] | None = None) -> pl.LazyFrame:
        """Return the events, columns of EVENT_SCHEMA, times in the file's own clock, in no particular order.

        Args:
            categories: only files that may hold these are read, and only these returned.
        """
        wanted = None if categories is None else list(categories)
        groups = list(GROUPS) if wanted is None else sorted({group_of(category) for category in wanted})
        files = [path for group in groups for path in self.files(group)]
        if not files:
            return pl.LazyFrame(schema=EVENT_SCHEMA)
        events = events_in(files)
        if wanted is not None and any(set(GROUPS[group]) - set(wanted) or group == "other" for group in groups):
            events = events.filter(pl.col("cat").cast(pl.String).is_in(wanted))
        return events.with_columns(index=position(self.window_starts))

    def files(self, group: str) -> list[Path]:
        """Return a group's event files."""
        return sorted(self.directory.glob(f"{group}-*.parquet"))


def events_in(files: list[Path]) -> pl.LazyFrame:
    """Return the rows of event files, columns of EVENT_SCHEMA (a file leaves out those that would be empty)."""
    return pl.scan_parquet(files, schema=EVENT_SCHEMA, missing_columns="insert", extra_columns="ignore")


def position(window_starts: tuple[int, ...]) -> pl.Expr:
    """Return the position in the event list of the rows of a store's file."""
    index = pl.col("index")
    if len(window_starts) == 1:
        return index
    window, within = index // (1 << INDEX_BITS), index % (1 << INDEX_BITS)
    return pl.lit(pl.Series(window_starts, dtype=pl.Int64)).gather(window) + within
