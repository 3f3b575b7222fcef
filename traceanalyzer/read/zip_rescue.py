"""Members of a zip archive whose directory is missing, as when its end was cut off: each is found by its own header."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

HEADER = b"PK\x03\x04"
HEADER_BYTES = 30
SIZES_HEADER = b"PK\x07\x08"
STORED, DEFLATED = 0, 8
READ_BYTES = 64 << 10


def zip_members_without_directory(file: BinaryIO) -> Iterator[tuple[str, io.RawIOBase]]:
    """Yield names and decompressed contents of members, read from the start of the file on.

    Each content must be read, as far as it goes, before the next member is asked for. A member that is encrypted or
    compressed otherwise than by deflate ends the search.

    Args:
        file: seekable, at the first member.
    """
    while (header := file.read(HEADER_BYTES)).startswith(HEADER) and len(header) == HEADER_BYTES:
        flags, method, size, name_bytes, extra_bytes = (
            int.from_bytes(header[at : at + length], "little")
            for at, length in ((6, 2), (8, 2), (18, 4), (26, 2), (28, 2))
        )
        name = file.read(name_bytes).decode("utf-8", "replace")
        file.seek(extra_bytes, io.SEEK_CUR)
        sizes_follow = bool(flags & 8)
        if flags & 1 or method not in {STORED, DEFLATED} or (method == STORED and sizes_follow):
            return
        content = _Content(file, size, deflated=method == DEFLATED)
        yield name, content
        try:
            content.skip_rest()
        except zlib.error:  # where the next member begins cannot be told
            return
        if sizes_follow and file.read(len(SIZES_HEADER)) != SIZES_HEADER:
            file.seek(-len(SIZES_HEADER), io.SEEK_CUR)
        if sizes_follow:
            file.seek(12, io.SEEK_CUR)


class _Content(io.RawIOBase):
    """One member, decompressed."""

    def __init__(self, file: BinaryIO, size: int, *, deflated: bool) -> None:
        self._file = file
        self._left = size
        self._inflate = zlib.decompressobj(-15) if deflated else None
        self._ready = b""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; b'' at the end of the member or of the file."""
        while not self._ready and self._more():
            pass
        size = len(self._ready) if size < 0 else size
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def _more(self) -> bool:
        if self._inflate is None:
            self._ready = self._file.read(min(self._left, READ_BYTES))
            self._left -= len(self._ready)
            return bool(self._ready)
        data = b"" if self._inflate.eof else self._file.read(READ_BYTES)
        if not data:
            return False
        self._ready = self._inflate.decompress(data)
        self._file.seek(-len(self._inflate.unused_data), io.SEEK_CUR)
        return True

    def skip_rest(self) -> None:
        """Go to the end of the member."""
        while self.read(READ_BYTES):
            pass
