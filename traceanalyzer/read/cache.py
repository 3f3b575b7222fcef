"""Ingested traces kept for the next command, by content.

An entry is a directory named after a hash of the file's bytes and its name. So that the second command on a trace
need not read it again, a small index remembers which hash a path had at which size and time of change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read.event_schema import SCHEMA_VERSION
from traceanalyzer.read.metadata import TraceSource
from traceanalyzer.read.scratch import Scratch, check_readable
from traceanalyzer.read.store import Store

ENTRY_FILE = "entry.json"
HASH_BYTES = 1 << 20


class Entry(msgspec.Struct):
    """What one input file held.

    Attributes:
        path: as it was given.
        stores: names of the directories of its traces.
        skipped: members that hold none.
        warnings: about the input as a whole.
    """

    path: str
    stores: list[str]
    skipped: list[TraceSource]
    warnings: list[TraceWarning]


@dataclass(frozen=True)
class Loaded:
    """An entry with its stores open."""

    stores: tuple[Store, ...]
    skipped: tuple[TraceSource, ...]
    warnings: tuple[TraceWarning, ...]


class Cache:
    """The cache directory; ``Cache.open`` gives None where there can be none."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def open(cls) -> Cache:
        """Return the user's cache.

        Raises:
            OSError: it cannot be written.
        """
        import platformdirs

        directory = Path(platformdirs.user_cache_dir("traceanalyzer")) / f"v{SCHEMA_VERSION}"
        check_readable(directory)
        (directory / "index").mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied", str(directory))
        return cls(directory)

    def key(self, path: str, status: os.stat_result, file: BinaryIO) -> str:
        """Return the key of a file's content, hashing it unless the index knows it already."""
        name = str(Path(path).absolute())
        index = self.directory / "index" / hashlib.blake2b(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        state = f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {status.st_dev}"
        try:
            known, _, key = index.read_text().partition("\n")
            if known == state and key:
                return key
        except (OSError, UnicodeDecodeError):
            pass
        key = content_key(file, Path(name).name)
        with suppress(OSError):  # the next run hashes again
            _write_atomically(index, f"{state}\n{key}")
        return key

    def load(self, key: str, path: str) -> Loaded | None:
        """Return the entry of a key, or None where there is none; one that is damaged is removed."""
        loaded = load_entry(self.directory / key, path)
        if loaded is None:
            shutil.rmtree(self.directory / key, ignore_errors=True)
        return loaded

    def scratch(self) -> Scratch:
        """Return a new directory to build an entry in."""
        return Scratch(self.directory)


def content_key(file: BinaryIO, name: str) -> str:
    """Hash a file's bytes and its name (the name may tell the rank)."""
    digest = hashlib.sha256(f"{SCHEMA_VERSION} {name}\0".encode("utf-8", "surrogateescape"))
    while block := file.read(HASH_BYTES):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()[:40]


def load_entry(directory: Path, path: str) -> Loaded | None:
    """Read an entry, with paths as given now."""
    try:
        entry = msgspec.json.decode((directory / ENTRY_FILE).read_bytes(), type=Entry)
        stores = [Store.read(directory / name) for name in entry.stores]
    except (OSError, msgspec.MsgspecError, TraceError):
        return None
    return Loaded(
        tuple(store.renamed(entry.path, path) for store in stores),
        tuple(source.renamed(entry.path, path) for source in entry.skipped),
        tuple(warning.at(path) for warning in entry.warnings),
    )


def write_entry(directory: Path, entry: Entry) -> None:
    """Complete an entry's directory."""
    (directory / ENTRY_FILE).write_bytes(msgspec.json.encode(entry))


def _write_atomically(target: Path, text: str) -> None:
    temporary = target.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text)
    temporary.replace(target)
