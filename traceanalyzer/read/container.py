"""Compressed bytes -> plain bytes: what a file is is read off its first bytes, never off its name.

Layers of compression are peeled until JSON, an archive or something unknown appears. Damage does not raise: what
could be decompressed is delivered, and a warning says where the rest was lost.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.read.gunzip import OUTPUT_BYTES, READ_BYTES, Gunzip

PIECE_BYTES = 16 << 10
XZ_MEMORY_BYTES = 256 << 20
MAX_LAYERS = 4
MAX_RATIO = 250
BOMB_FLOOR_BYTES = 1 << 30
"""A file that expands more than MAX_RATIO times is refused, once it has grown beyond BOMB_FLOOR_BYTES."""

MAGIC: tuple[tuple[bytes, int, str], ...] = (
    (b"\x1f\x8b", 0, "gzip"),
    (b"BZh", 0, "bzip2"),
    (b"\xfd7zXZ\x00", 0, "xz"),
    (b"\x28\xb5\x2f\xfd", 0, "zstd"),
    (b"PK\x03\x04", 0, "zip"),
    (b"PK\x05\x06", 0, "zip"),
    (b"ustar", 257, "tar"),
    (b"\xff\xfe", 0, "utf-16"),
    (b"\xfe\xff", 0, "utf-16"),
)
KNOWN_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x02", "a Python pickle"),
    (b"SQLite format 3", "an SQLite database (Nsight Systems export?)"),
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "a picture"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"<!", "a web page, not the file it links to"),
    (b"<html", "a web page, not the file it links to"),
    (b"\x04\x22\x4d\x18", "LZ4 data: decompress it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive: unpack it first"),
    (b"Rar!", "a RAR archive: unpack it first"),
    (b"version https://git-lfs", "a Git LFS pointer: fetch the file itself (git lfs pull)"),
)


class Decompressor(Protocol):
    """What the decompressor objects of bz2, lzma and the zstd packages share."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...  # noqa: D102


class Plain:
    """A stream of decompressed blocks that can be looked at before it is consumed.

    Attributes:
        path: for messages.
        source: the file as stored.
        on_read: called with the stored bytes read so far.
        start: the first bytes of the text, once ``peel`` was called.
        layers: names of the compressions peeled off, outermost first.
        problems: what was wrong with the compression.
        cut_short: whether data are known to be missing.
    """

    def __init__(
        self, path: str, source: BinaryIO, on_read: Callable[[int], None] | None = None, *, outer_bytes: int = 0
    ) -> None:
        self.path = path
        self.source = source
        self.start = b""
        self.layers: list[str] = []
        self.problems: list[TraceWarning] = []
        self.cut_short = False
        self.on_read = on_read
        self.stored_bytes = 0
        self._outer_bytes = outer_bytes
        self._head = b""
        self._blocks = self._bounded(self._stored()) if outer_bytes else self._stored()

    @property
    def can_restart(self) -> bool:
        """Whether the text can be read a second time."""
        return self.source.seekable()

    def restarted(self) -> Plain:
        """Return the same text from its start."""
        self.source.seek(0)
        again = Plain(self.path, self.source, self.on_read)
        again.peel()
        return again

    def stored_size(self) -> int:
        """Return the size of the file now: another than at the start if it grew while it was read."""
        try:
            return os.fstat(self.source.fileno()).st_size
        except (OSError, AttributeError, ValueError):
            return self.stored_bytes

    def peek(self, size: int) -> bytes:
        """Return up to ``size`` first bytes without consuming them."""
        while len(self._head) < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._head += block
        return self._head[:size]

    def kind(self) -> str | None:
        """Return what the first bytes are: a compression, an archive, or None for anything else."""
        head = self.peek(512)
        return next((name for magic, at, name in MAGIC if head[at : at + len(magic)] == magic), None)

    def peel(self) -> str | None:
        """Undo every layer of compression; return ``zip``, ``tar`` or None for what is inside."""
        while (kind := self.kind()) is not None and kind not in {"zip", "tar"}:
            if len(self.layers) >= MAX_LAYERS:
                raise TraceError(self.path, f"compressed more than {MAX_LAYERS} times over")
            outermost = not self.layers
            if kind != "utf-16":
                self.layers.append(kind)
            layer = self._layer(kind, outermost=outermost)
            self._blocks, self._head = layer, b""
        self.start = self.peek(512)
        return kind

    def __iter__(self) -> Iterator[bytes]:
        """Deliver the blocks, what was looked at first."""
        if self._head:
            head, self._head = self._head, b""
            yield head
        yield from self._blocks

    def _layer(self, kind: str, *, outermost: bool) -> Iterator[bytes]:
        below = _chain(self._head, self._blocks)
        if kind == "utf-16":
            return _utf16(below)
        if kind == "gzip":
            seekable = outermost and self.source.seekable()
            return self._bounded(Gunzip(below, self, self.source if seekable else None).blocks())
        makers: dict[str, Callable[[], Any]] = {
            "bzip2": bz2.BZ2Decompressor,
            "xz": lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES),
            "zstd": lambda: _zstd(self.path),
        }
        return self._bounded(_peel(below, makers[kind], kind, self))

    def _stored(self) -> Iterator[bytes]:
        while block := self.source.read(READ_BYTES):
            self.stored_bytes += len(block)
            if self.on_read is not None:
                self.on_read(self.stored_bytes)
            yield block
        damage = getattr(self.source, "damage", None)
        if damage:
            self.lost("archive", damage)

    def _bounded(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for block in blocks:
            total += len(block)
            if total > BOMB_FLOOR_BYTES and total > MAX_RATIO * max(self._outer_bytes or self.stored_bytes, 1):
                raise TraceError(
                    self.path,
                    f"expands more than {MAX_RATIO} times (to over {total >> 20} MiB): refused as a decompression bomb",
                )
            yield block

    def ended(self, kind: str) -> None:
        """Record that compressed data are cut off."""
        self.cut_short = True
        self.problems.append(
            TraceWarning(
                "damaged_compression", f"the {kind} data are incomplete (truncated), and what they held is kept"
            )
        )

    def trailing(self, kind: str, at: int) -> None:
        """Record that something else follows the compressed data."""
        message = f"bytes after the {kind} data, from byte {at} on, were ignored"
        self.problems.append(TraceWarning("trailing_data", message))

    def lost(self, kind: str, why: str, at: int | None = None) -> None:
        """Record that compressed data are damaged or missing."""
        self.cut_short = True
        place = "" if at is None else f" at byte {at} of the compressed file"
        message = f"the {kind} data are damaged{place} ({why}): values near the damage may be wrong"
        self.problems.append(TraceWarning("damaged_compression", message))


class PlainReader(io.RawIOBase):
    """A Plain as a file to read from."""

    def __init__(self, plain: Plain) -> None:
        self._blocks = iter(plain)
        self._rest = b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next."""
        if not self._rest:
            self._rest = next(self._blocks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _peel(below: Iterator[bytes], make: Callable[[], Decompressor], kind: str, plain: Plain) -> Iterator[bytes]:
    """Decompress one or more streams of bzip2, xz or zstd."""
    decompressor, begun = make(), False
    for data in below:
        rest = data
        while rest:
            piece, rest = rest[:PIECE_BYTES], rest[PIECE_BYTES:]
            begun = True
            try:
                yield from _pieces(decompressor, piece)
            except Exception as error:  # each package has its own exceptions
                plain.lost(kind, str(error))
                return
            if decompressor.eof:
                rest = (decompressor.unused_data + rest).lstrip(b"\0")
                decompressor, begun = make(), False
    if begun:
        plain.ended(kind)


def _pieces(decompressor: Any, data: bytes) -> Iterator[bytes]:
    """Decompress in steps of bounded size, where the package allows that: a few bytes can hold a great many."""
    if not hasattr(decompressor, "needs_input"):
        yield decompressor.decompress(data)
        return
    block = decompressor.decompress(data, OUTPUT_BYTES)
    while block:
        yield block
        finished = decompressor.eof or decompressor.needs_input
        block = b"" if finished else decompressor.decompress(b"", OUTPUT_BYTES)


def _zstd(path: str) -> Any:
    """Return a zstd decompressor from whichever package is there."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            package = __import__(module, fromlist=["ZstdDecompressor"])
        except ImportError:
            continue
        return package.ZstdDecompressor()
    try:
        zstandard: Any = __import__("zstandard")
    except ImportError:
        raise TraceError(path, "is compressed with zstd; `pip install zstandard`, or decompress it first") from None
    return zstandard.ZstdDecompressor().decompressobj()


def _utf16(below: Iterator[bytes]) -> Iterator[bytes]:
    import codecs

    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    for block in below:
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _chain(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from blocks


def describe_unknown(head: bytes) -> str:
    """Say what a file that holds no JSON seems to be."""
    text = head.lstrip()
    for magic, name in KNOWN_OTHERS:
        if text[: len(magic)].lower() == magic.lower():
            return f"not a trace: it is {name}"
    if not head.strip(b"\0"):
        return "not a trace: it holds only zero bytes"
    shown = ascii(head[:16].decode("latin-1"))
    return f"not a JSON trace: it starts with {shown}"
