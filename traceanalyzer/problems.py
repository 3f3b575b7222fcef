"""What can be wrong with an input: the one exception for unusable input, and warnings as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace


class TraceError(Exception):
    """An input cannot be used.

    The command line shows it as one line, ``path: reason``, and exits with status 1.

    Args:
        path: the input as the user gave it.
        reason: what is wrong and, where known, what to do about it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str]]:
        """Be made again from path and reason: else a process pool whose worker raises it never answers."""
        return type(self), (self.path, self.reason)


@dataclass(frozen=True)
class TraceWarning:
    """Something the user should know about an input that could still be used.

    Attributes:
        code: a stable lower-case identifier, such as ``truncated``.
        message: one sentence for a person.
        source: the file concerned, or null when it concerns the whole input.
        count: how many events are concerned, where that can be counted.
        byte_offset: where in the decompressed file, where that is known.
        line: the 1-based line there, where that is known.
    """

    code: str
    message: str
    source: str | None = None
    count: int | None = None
    byte_offset: int | None = None
    line: int | None = None

    def at(self, source: str) -> TraceWarning:
        """Return the same warning, naming the file it belongs to."""
        return replace(self, source=source)

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the keys that the JSON contract asks for."""
        return asdict(self)
