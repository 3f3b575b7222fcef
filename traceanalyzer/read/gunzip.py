"""The members of a gzip file, as far as they can be decompressed."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from traceanalyzer.read.replay_buffer import Kept

READ_BYTES = 64 << 10
OUTPUT_BYTES = 1 << 20


class Damage(Protocol):
    """Who is told what is wrong with compressed data."""

    def lost(self, kind: str, why: str, at: int | None = None) -> None:
        """Data are damaged."""

    def ended(self, kind: str) -> None:
        """Data are cut off."""

    def trailing(self, kind: str, at: int) -> None:
        """Something else follows the data."""


class Gunzip:
    """Members of a gzip file, one after the other, as far as they can be read.

    Args:
        below: the compressed data.
        damage: who is told.
        source: where the same data can be read again; None where they cannot, as of a pipe.
    """

    def __init__(self, below: Iterator[bytes], damage: Damage, source: BinaryIO | None) -> None:
        self._kept = Kept(below) if source is None else None
        self._below = below if self._kept is None else iter(self._kept)
        self._damage = damage
        self._source = source

    def blocks(self) -> Iterator[bytes]:
        """Yield what the members hold; damage and trailing bytes are reported, not raised."""
        from isal import isal_zlib

        data, consumed = next(self._below, b""), 0
        while data:
            member, start, produced = isal_zlib.decompressobj(31), consumed, 0
            if self._kept is not None:
                self._kept.forget(consumed, data)
            while not member.eof:
                try:
                    block = member.decompress(data, OUTPUT_BYTES)
                except Exception as error:  # isal has its own exceptions
                    yield from self._rescue(start, produced)
                    self._damage.lost("gzip", str(error).split(": ")[-1], consumed)
                    data, consumed = self._next_member(data[1:], consumed + 1)
                    break
                produced += len(block)
                rest = member.unused_data if member.eof else member.unconsumed_tail
                consumed += len(data) - len(rest)
                data = rest
                if block:
                    yield block
                elif not data and not member.eof:
                    data = next(self._below, b"")
                    if not data:
                        self._damage.ended("gzip")
                        return
            if member.eof:
                data, consumed = self._after_member(data, consumed)

    def _after_member(self, data: bytes, consumed: int) -> tuple[bytes, int]:
        """Skip padding; return the start of the next member, or nothing."""
        while True:
            stripped = data.lstrip(b"\0")
            consumed += len(data) - len(stripped)
            data = stripped
            if len(data) >= 3:
                break
            more = next(self._below, b"")
            if not more:
                break
            data += more
        if data and not data.startswith(b"\x1f\x8b\x08"):
            self._damage.trailing("gzip", consumed)
            return b"", consumed
        return data, consumed

    def _next_member(self, data: bytes, consumed: int) -> tuple[bytes, int]:
        """Search for a later member of a damaged file."""
        while True:
            at = data.find(b"\x1f\x8b\x08")
            if at >= 0 and (at + 3 >= len(data) or data[at + 3] < 32):
                return data[at:], consumed + at
            keep = data[at + 1 :] if at >= 0 else data[-2:]
            consumed += len(data) - len(keep)
            more = next(self._below, b"")
            if not more:
                return b"", consumed
            data = keep + more

    def _rescue(self, start: int, produced: int) -> Iterator[bytes]:
        """Decompress a damaged member again, byte by byte near the damage, to get all that precedes it."""
        with self._again(start) as source:
            head = source.read(READ_BYTES)
            body = _after_gzip_header(head)
            if body is not None:
                yield from _inflate_carefully(source, head[body:], produced)

    @contextmanager
    def _again(self, start: int) -> Iterator[BinaryIO]:
        """Give the compressed data from byte ``start`` on, empty where they are no longer known."""
        if self._source is None:
            yield (self._kept.again(start) if self._kept is not None else None) or io.BytesIO()
            return
        back = self._source.tell()
        try:
            self._source.seek(start)
            yield self._source
        finally:
            if not self._source.closed:  # it is when the reader gave up in between
                self._source.seek(back)


def _after_gzip_header(head: bytes) -> int | None:
    """Return where the deflate data start."""
    if len(head) < 18 or head[:3] != b"\x1f\x8b\x08":
        return None
    flags, at = head[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            at = head.find(b"\0", at) + 1
            if at == 0:
                return None
    return at + (2 if flags & 2 else 0)


def _inflate_carefully(source: BinaryIO, data: bytes, known: int) -> Iterator[bytes]:
    """Yield what follows the first ``known`` bytes of raw deflate data, up to the damage."""
    inflate, produced = zlib.decompressobj(-15), 0
    while data:
        step = len(data) if produced + len(data) * 1100 < known else 1
        for piece in (data[i : i + step] for i in range(0, len(data), step)):
            try:
                block = inflate.decompress(piece)
            except zlib.error:
                return
            fresh = block[max(0, known - produced) :]
            produced += len(block)
            if fresh:
                yield fresh
            if inflate.eof:
                return
        data = source.read(4096)
