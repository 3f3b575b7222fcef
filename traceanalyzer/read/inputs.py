"""A file -> the traces in it: archives are walked, nothing is unpacked."""

from __future__ import annotations

import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from traceanalyzer.problems import TraceError, TraceWarning, whole_text
from traceanalyzer.read.container import Plain, PlainReader
from traceanalyzer.read.input_path import STANDARD_INPUT
from traceanalyzer.read.pipes import READ_ONCE
from traceanalyzer.read.rank_of_file import FRONT_END, GRAPH_CAPTURE, GRAPH_CAPTURE_FOLDER
from traceanalyzer.read.zip_rescue import zip_members_without_directory

MAX_NESTING = 3
STEP_BYTES = 4096
MAX_MEMBERS = 10_000
MAX_SPOOLED_BYTES = 16 << 30
SIDE_FILES = (".txt", ".log", ".md", ".csv", ".py", ".yaml", ".yml", ".toml", ".html", ".png", ".svg", ".pdf", ".sh")
"""Names of files that lie beside traces; they are skipped unless their first bytes say otherwise."""


@dataclass(frozen=True)
class TraceStream:
    """A stream that may be a trace, or the reason why it is not.

    Attributes:
        path: as shown to the user, ``archive!member`` for members.
        size: bytes as stored.
        plain: positioned at the start of the text, or None when skipped.
        skipped: why.
        problems: of the archive it lies in.
    """

    path: str
    size: int
    plain: Plain | None
    skipped: str | None = None
    problems: tuple[TraceWarning, ...] = ()


def check_file(path: str) -> os.stat_result:
    """Return the status of a file that can be read more than once.

    Raises:
        TraceError: it cannot be read, or is not a regular file.
    """
    if path == STANDARD_INPUT:
        raise TraceError(path, f"cannot be read as a file: {READ_ONCE}, so save it to a file first")
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        raise TraceError(path, _os_reason(error)) from error
    kinds = (
        (stat.S_ISFIFO, "a pipe, which can be read only once: save it to a file first"),
        (stat.S_ISCHR, "a device, not a file"),
        (stat.S_ISBLK, "a device, not a file"),
        (stat.S_ISSOCK, "a socket, not a file"),
    )
    for is_kind, name in kinds:
        if is_kind(status.st_mode):
            raise TraceError(path, f"cannot be read as a trace: it is {name}")
    return status


def _os_reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)


def by_name(path: str) -> str | None:
    """Return why a file found in a directory or an archive holds no trace, as far as its name tells."""
    name = path.rsplit("/", 1)[-1]
    if FRONT_END.search(name):
        return "front-end process (async_llm): it records no GPU work"
    if GRAPH_CAPTURE.search(name) or GRAPH_CAPTURE_FOLDER.search(path):
        return "graph-capture trace: name it itself to read it"
    if name.lower().endswith(SIDE_FILES):
        return "not a trace, by its name"
    return None


@contextmanager
def opened(path: str, on_read: Callable[[int], None] | None = None) -> Iterator[Plain]:
    """Open a file for reading as plain text.

    Raises:
        TraceError: it cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            yield Plain(whole_text(path), file, on_read)
    except OSError as error:
        raise TraceError(path, _os_reason(error)) from error


def traces_in(plain: Plain, size: int, *, chosen: bool, nesting: int = 0) -> Iterator[TraceStream]:
    """Yield what may be traces in a stream: itself, or the members of the archive it is.

    Each must be read before the next is asked for.

    Args:
        plain: at its start.
        size: bytes as stored.
        chosen: named by the user, so that its own name does not speak against it.
        nesting: archives around this one.
    """
    reason = None if chosen else by_name(plain.path)
    kind = None if reason else plain.peel()
    if reason or kind is None:
        yield TraceStream(plain.path, size, None if reason else plain, reason)
        return
    if nesting >= MAX_NESTING:
        raise TraceError(plain.path, f"archives are nested more than {MAX_NESTING} deep")
    if kind == "tar":
        yield from _tar_members(plain, nesting)
    else:
        with _seekable(plain) as file:
            yield from _zip_members(plain, file, nesting)


def _unsafe(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or (len(name) > 1 and name[1] == ":")


def _refused(path: str, size: int, why: str) -> TraceStream:
    return TraceStream(path, size, None, why, (TraceWarning("skipped_member", f"{path} was not read: {why}"),))


DAMAGED_ZIP = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError),
    *(OSError, ValueError, OverflowError, struct.error),
)
"""What the library raises for archives that are damaged or that it cannot read."""

UNSAFE = "its name is absolute or leads out of the archive"
LINK = "it is a link or special file"


def _tar_members(plain: Plain, nesting: int) -> Iterator[TraceStream]:
    count = 0
    try:
        with tarfile.open(fileobj=cast(IO[bytes], PlainReader(plain)), mode="r|") as archive:
            for member in archive:
                count += 1
                _check_count(count, plain.path)
                # Names that are not UTF-8 come with surrogates, which no JSON document can hold.
                path = f"{plain.path}!{member.name.encode('utf-8', 'backslashreplace').decode()}"
                if member.isdir():
                    continue
                if not member.isfile():
                    yield _refused(path, 0, LINK)
                elif _unsafe(member.name):
                    yield _refused(path, member.size, UNSAFE)
                elif (file := archive.extractfile(member)) is not None:
                    yield from traces_in(_member(path, file), member.size, chosen=False, nesting=nesting + 1)
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        yield _damaged_archive(plain, "tar", error)


def _check_count(count: int, path: str) -> None:
    if count > MAX_MEMBERS:
        raise TraceError(path, f"more than {MAX_MEMBERS} members in the archive")


def _damaged_archive(plain: Plain, kind: str, error: Exception) -> TraceStream:
    why = f"the {kind} archive is damaged or incomplete: {error}"
    return TraceStream(plain.path, 0, None, why, (TraceWarning("damaged_archive", why),))


def _zip_members(plain: Plain, file: BinaryIO, nesting: int) -> Iterator[TraceStream]:
    try:
        archive = zipfile.ZipFile(file)
    except DAMAGED_ZIP as error:
        yield _damaged_archive(plain, "zip", error)
        file.seek(0)
        for name, stored in zip_members_without_directory(file):
            path = f"{plain.path}!{name}"
            if not name.endswith("/") and not _unsafe(name):
                yield from traces_in(_member(path, cast(IO[bytes], stored)), 0, chosen=False, nesting=nesting + 1)
        return
    with archive:
        members = archive.infolist()
        _check_count(len(members), plain.path)
        for member in members:
            if not member.is_dir():
                yield from _zip_member(plain, archive, member, nesting)


def _zip_member(plain: Plain, archive: zipfile.ZipFile, member: zipfile.ZipInfo, nesting: int) -> Iterator[TraceStream]:
    path, size = f"{plain.path}!{member.filename}", member.compress_size
    if _unsafe(member.filename):
        yield _refused(path, size, UNSAFE)
    elif stat.S_ISLNK(member.external_attr >> 16):
        yield _refused(path, size, LINK)
    elif member.flag_bits & 1:
        yield _refused(path, size, "it is encrypted: unpack it first")
    elif reason := by_name(path):
        yield TraceStream(path, size, None, reason)
    else:
        try:
            stream = archive.open(member)
        except DAMAGED_ZIP as error:
            yield _refused(path, size, f"it is damaged: {error}")
            return
        with stream:
            yield from traces_in(
                _member(path, stream, stored_bytes=max(size, 1)), size, chosen=False, nesting=nesting + 1
            )


def _member(path: str, stream: IO[bytes], stored_bytes: int = 0) -> Plain:
    return Plain(path, cast(BinaryIO, _Member(stream)), outer_bytes=stored_bytes)


class _Member:
    """A member's stream, read forwards only; what is damaged in it ends it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes, in small steps: the step that meets the damage delivers nothing."""
        parts = []
        while size > 0 and self.damage is None:
            try:
                part = self._stream.read(min(size, STEP_BYTES))
            except Exception as error:  # each compression has its own exceptions
                self.damage = str(error) or type(error).__name__
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def seekable(self) -> bool:
        return False


@contextmanager
def _seekable(plain: Plain) -> Iterator[BinaryIO]:
    """Give a zip archive as a file to seek in: itself where possible, else a temporary copy on disk."""
    source = plain.source
    if not plain.layers and source.seekable():
        source.seek(0)
        yield source
        return
    with tempfile.TemporaryFile(prefix="traceanalyzer-") as copy:
        total = 0
        for block in plain:
            total += len(block)
            if total > MAX_SPOOLED_BYTES:
                raise TraceError(plain.path, f"the archive inside is larger than {MAX_SPOOLED_BYTES >> 30} GiB")
            copy.write(block)
        copy.seek(0)
        yield cast(BinaryIO, copy)
