"""Compressed bytes that cannot be read again, kept for the case that they turn out to be damaged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

MAX_KEPT_BYTES = 16 << 20
PIECE_BYTES = 512
"""Compressed bytes handed on at once where nothing is kept: what they expand to is lost with the damage among them."""


class Kept:
    """The blocks of a stream, remembered from a chosen place on while they are few.

    Args:
        below: the blocks.
    """

    def __init__(self, below: Iterator[bytes]) -> None:
        self._blocks = self._handed_on(below)
        self._kept: list[bytes] | None = []
        self._start = 0
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        return self._blocks

    def forget(self, at: int, data: bytes) -> None:
        """Remember from byte ``at`` of the stream on; ``data`` is what was handed out from there already."""
        self._kept, self._start, self._size = [data], at, len(data)

    def again(self, at: int) -> BinaryIO | None:
        """Return what was handed out from byte ``at`` on; None where it is no longer known."""
        if self._kept is None or at < self._start:
            return None
        file = io.BytesIO(b"".join(self._kept))
        file.seek(at - self._start)
        return file

    def _handed_on(self, below: Iterator[bytes]) -> Iterator[bytes]:
        for block in below:
            if self._kept is not None and self._size + len(block) > MAX_KEPT_BYTES:
                self._kept = None
            if self._kept is None:
                yield from (block[at : at + PIECE_BYTES] for at in range(0, len(block), PIECE_BYTES))
                continue
            self._kept.append(block)
            self._size += len(block)
            yield block
