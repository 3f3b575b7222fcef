"""A file to import, opened once: its text, decompressed, and its name."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from traceanalyzer.problems import TraceError

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class SweepSource:
    """What a format decides from, and reads.

    Attributes:
        path: as the user gave it.
        text: the whole file.
        top_k: experts per token, where the user gave it.
    """

    path: str
    text: str
    top_k: int | None = None

    @property
    def name(self) -> str:
        """The file's name without folders, and without ``.gz``."""
        return Path(self.path).name.removesuffix(".gz")

    @cached_property
    def document(self) -> Any:
        """The file as one JSON document; ``None`` when it is not one."""
        if not self.text.lstrip().startswith(("{", "[")):
            return None
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The cells of the first line, as a CSV file's heading."""
        first = self.text.lstrip().partition("\n")[0]
        return tuple(cell.strip() for cell in first.split(","))

    def error(self, reason: str) -> TraceError:
        """Return the error that names this file."""
        return TraceError(self.path, reason)


def open_source(path: str, top_k: int | None = None) -> SweepSource:
    """Read a file, gzip or plain.

    Raises:
        TraceError: it cannot be read, is not text, or is empty.
    """
    try:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(path, f"is not UTF-8 text (byte {error.start})") from error
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not text.strip():
        raise TraceError(path, "is empty")
    return SweepSource(path, text, top_k)
