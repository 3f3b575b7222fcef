"""The text of a trace as it comes, block by block, as much of it as is needed, and where a JSON value in it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceanalyzer.problems import TraceWarning

MAX_VALUE_BYTES = 16 << 20
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\],]', re.DOTALL)
SPACE = re.compile(rb"\s*")


class TextEnded(Exception):  # noqa: N818  it is an answer, not an error
    """The text ended inside a value."""


class TextDamaged(Exception):  # noqa: N818
    """The text is not JSON here."""


class TextStream:
    """A position in a text that is read forwards; as much as is asked for is held in memory.

    Args:
        blocks: the text in pieces.

    Attributes:
        problems: what was found wrong so far.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self.problems: list[TraceWarning] = []
        self._blocks = iter(blocks)
        self._buffer = b""
        self._offset = 0
        self._line: int | None = 1
        self._ended = False

    @property
    def text_bytes(self) -> int:
        """Bytes of text read so far."""
        return self._offset + len(self._buffer)

    def _fill(self, size: int) -> bool:
        """Have at least ``size`` bytes in the buffer; false where the text ends before."""
        if len(self._buffer) >= size:
            return True
        parts, have = [self._buffer], len(self._buffer)
        while have < size and not self._ended:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
                break
            parts.append(block)
            have += len(block)
        self._buffer = b"".join(parts)
        return have >= size

    def _drop(self, size: int) -> None:
        if self._line is not None:
            self._line += self._buffer.count(b"\n", 0, size)
        self._offset += size
        self._buffer = self._buffer[size:]

    def _skip_space(self) -> bytes:
        """Move to the next byte that is not white space and return it, or b'' at the end."""
        while True:
            end = SPACE.match(self._buffer).end()  # type: ignore[union-attr]
            self._drop(end)
            if self._buffer or not self._fill(1):
                return self._buffer[:1]

    def _warn(self, code: str, message: str) -> None:
        self.problems.append(TraceWarning(code, message, byte_offset=self._offset, line=self._line))

    def _value_end(self, at: int) -> int:
        """Return where the JSON value that starts at ``at`` ends, reading more text as needed."""
        depth = 0
        position = at
        while True:
            token = TOKEN.search(self._buffer, position)
            if token is None or token[0] == b'"':
                if token is None and depth == 0 and self._ended:
                    return len(self._buffer)
                position = self._read_on(at, token)
                continue
            byte = token[0]
            depth += (byte in {b"{", b"["}) - (byte in {b"}", b"]"})
            if depth < 0 or (depth == 0 and byte == b","):
                return token.start()
            if depth == 0:
                return token.end()
            position = token.end()

    def _read_on(self, at: int, unclosed: re.Match[bytes] | None) -> int:
        """Get more of a value that does not end in the buffer; return where to go on looking.

        Args:
            at: where the value starts.
            unclosed: the quote of a string that does not end, if there is one.

        Raises:
            TextEnded: there is no more.
            TextDamaged: the value is longer than any should be.
        """
        if len(self._buffer) - at > MAX_VALUE_BYTES:
            raise TextDamaged
        position = unclosed.start() if unclosed else len(self._buffer)
        if not self._fill(2 * len(self._buffer) + (1 << 16)) and position >= len(self._buffer) - 1:
            raise TextEnded
        if self._ended and unclosed and TOKEN.search(self._buffer, position)[0] == b'"':  # type: ignore[index]
            raise TextEnded
        return position
