"""Members of a zip archive whose directory is missing, as when its end was cut off: each is found by its own header."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

HEADER = b"PK\x03\x04"
HEADER_BYTES = 30
STORED, DEFLATED = 0, 8
READ_BYTES = 64 << 10


def zip_members_without_directory(file: BinaryIO) -> Iterator[tuple[str, io.RawIOBase]]:
    """Yield names and decompressed contents of members, read from the start of the file on.

    Each content must be read, as far as it goes, before the next member is asked for. Members that are encrypted or
    compressed otherwise than by deflate end the search.
    """
    rest = b""
    while True:
        header = _exactly(file, rest, HEADER_BYTES)
        if len(header) < HEADER_BYTES or not header.startswith(HEADER):
            return
        flags, method = int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little")
        size = int.from_bytes(header[18:22], "little")
        name_bytes = int.from_bytes(header[26:28], "little")
        following = header[HEADER_BYTES:]
        text = _exactly(file, following, name_bytes + int.from_bytes(header[28:30], "little"))
        name = text[:name_bytes].decode("utf-8", "replace")
        member = _Content(file, method, size, flags)
        if member.unreadable:
            return
        yield name, member
        rest = member.finish()


def _exactly(file: BinaryIO, head: bytes, size: int) -> bytes:
    """Return ``head`` completed to at least ``size`` bytes where the file has them."""
    return head + file.read(size - len(head)) if len(head) < size else head


class _Content(io.RawIOBase):
    """One member, decompressed."""

    def __init__(self, file: BinaryIO, method: int, size: int, flags: int) -> None:
        self._file = file
        self._left = size
        self._inflate = zlib.decompressobj(-15) if method == DEFLATED else None
        self._followed_by_sizes = bool(flags & 8)
        self._rest = b""
        self._ready = b""
        self.unreadable = bool(flags & 1) or method not in {STORED, DEFLATED} or (method == STORED and flags & 8 != 0)

    def read(self, size: int = -1) -> bytes:
        while not self._ready and self._more():
            pass
        size = len(self._ready) if size < 0 else size
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def _more(self) -> bool:
        """Decompress one more piece; false at the end of the member or of the file."""
        if self._inflate is None:
            self._ready = self._file.read(min(self._left, READ_BYTES))
            self._left -= len(self._ready)
            return bool(self._ready)
        if self._inflate.eof:
            return False
        data = self._file.read(READ_BYTES)
        if not data:
            return False
        self._ready = self._inflate.decompress(data)
        self._rest = self._inflate.unused_data
        return True

    def finish(self) -> bytes:
        """Go to the end of the member; return what was read beyond it."""
        while self.read(READ_BYTES):
            pass
        rest = self._rest
        if self._followed_by_sizes:
            rest = _exactly(self._file, rest, 16)
            return rest[16:] if rest.startswith(b"PK\x07\x08") else rest[12:]
        return rest
