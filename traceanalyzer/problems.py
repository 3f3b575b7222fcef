"""What can be wrong with an input: the one exception for unusable input, and warnings as data."""

from __future__ import annotations

from typing import Annotated

import msgspec

from traceanalyzer.declare import Part, told


def whole_text(text: str) -> str:
    r"""Return text that every encoding of Unicode can write: halves of characters are written out, as ``\udc80``.

    Names of files hold them for bytes that are not UTF-8.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class TraceError(Exception):
    """An input cannot be used.

    The command line shows it as one line, ``path: reason``, and exits with status 1.

    Args:
        path: the input as the user gave it.
        reason: what is wrong and, where known, what to do about it.
    """

    def __init__(self, path: str, reason: str) -> None:
        path, reason = whole_text(path), whole_text(reason)
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str]]:
        """Pickle as path and reason: otherwise a process pool whose worker raises it never answers."""
        return type(self), (self.path, self.reason)


class TraceWarning(Part, kw_only=False):
    """Something to know about an input that could still be used."""

    code: Annotated[str, told("A stable lower-case identifier, such as truncated; see warnings.md.")]
    message: Annotated[str, told("One sentence for a person.")]
    source: Annotated[str | None, told("The file concerned.", null="it concerns the whole input")] = None
    count: Annotated[int | None, told("Events, requests or files concerned.", null="not counted")] = None
    byte_offset: Annotated[int | None, told("Where in the decompressed file.", null="unknown", unit="bytes")] = None
    line: Annotated[int | None, told("The line there, from 1.", null="unknown")] = None

    def __post_init__(self) -> None:
        """Keep text that every encoding can write."""
        for name in ("message", "source"):
            text = getattr(self, name)
            if text is not None and not text.isascii():
                msgspec.structs.force_setattr(self, name, whole_text(text))

    def at(self, source: str) -> TraceWarning:
        """Return the same warning, naming the file it belongs to."""
        return msgspec.structs.replace(self, source=source)

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the keys that the JSON contract asks for."""
        return msgspec.structs.asdict(self)
