"""Text files as benchmarks and monitors leave them: gzip or plain, UTF-8 or the UTF-16 that PowerShell writes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from traceanalyzer.problems import TraceError

LARGEST_BYTES = 1 << 30
GZIP = b"\x1f\x8b"


def text_of(path: Path) -> str:
    """Decode a file; bytes that cannot be decoded are replaced.

    Raises:
        TraceError: it cannot be read, or is too large to be what it should be.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            data = gzip.GzipFile(fileobj=file).read(LARGEST_BYTES + 1) if compressed else file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST_BYTES:
        raise TraceError(str(path), "is larger than 1 GiB, which no such file is")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def exists(path: str) -> bool:
    """Whether there is such a file or folder; no list of files is one, however long its text."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
