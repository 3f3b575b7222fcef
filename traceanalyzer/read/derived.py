"""Results that upper layers derive from a store's events, kept beside the events for the next command.

A result is one file, so that it is replaced as a whole: a ZIP archive, uncompressed, of Parquet tables and a JSON
member that says what they were derived from. Its checksums are verified on reading. Nothing here may fail: a file that
is damaged, foreign or of another version counts as absent, and where nothing can be written nothing is kept.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError
from traceanalyzer.read.scratch import PREFIX
from traceanalyzer.read.store import METADATA_FILE, Store

SUFFIX = ".derived"
_ABOUT = "about.json"
_TABLE = ".parquet"


class _About(msgspec.Struct):
    """What the tables of a file were derived from: the store's metadata file by hash, and by which version of what."""

    store: str
    version: str
    facts: msgspec.Raw


@dataclass(frozen=True)
class Derived:
    """The derived results of one store.

    Attributes:
        directory: the store's.
    """

    directory: Path

    @classmethod
    def beside(cls, store: Store) -> Derived | None:
        """Return those of a store; None for a temporary one, which no other command will see."""
        temporary = any(part.startswith(PREFIX) for part in store.directory.parts)
        return None if temporary else cls(store.directory)

    def read(self, name: str, version: str) -> tuple[dict[str, pl.DataFrame], bytes] | None:
        """Return the tables and the facts that ``write`` was given, or None where they are not there for this version.

        Args:
            name: what was derived; the name of the file.
            version: of what derived it.
        """
        try:
            with zipfile.ZipFile(self._file(name)) as archive:
                about = msgspec.json.decode(archive.read(_ABOUT), type=_About)
                if about.version != version or about.store != self._identity():
                    return None
                members = [member for member in archive.namelist() if member.endswith(_TABLE)]
                tables = {
                    member.removesuffix(_TABLE): pl.read_parquet(io.BytesIO(archive.read(member))) for member in members
                }
        except (OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError):
            return None
        except (zipfile.BadZipFile, zlib.error, msgspec.MsgspecError, pl.exceptions.PolarsError):
            return None
        return tables, bytes(about.facts)

    def write(self, name: str, version: str, tables: Mapping[str, pl.DataFrame], facts: bytes) -> None:
        """Keep tables and facts (JSON text), replacing what was there; without effect where that is not possible."""
        with suppress(OSError, TraceError, pl.exceptions.PolarsError):
            about = _About(self._identity(), version, msgspec.Raw(facts))
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(_ABOUT, msgspec.json.encode(about))
                for table, frame in tables.items():
                    content = io.BytesIO()
                    frame.write_parquet(content, compression="lz4")
                    archive.writestr(table + _TABLE, content.getvalue())
            write_whole(self._file(name), file.getvalue())

    def _file(self, name: str) -> Path:
        return self.directory / f"{name}{SUFFIX}"

    def _identity(self) -> str:
        """Hash the metadata file, which has the sizes of the event files: a copy of a store keeps its results."""
        return hashlib.sha256((self.directory / METADATA_FILE).read_bytes()).hexdigest()
