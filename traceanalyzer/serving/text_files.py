"""Text files of benchmarks and monitors: gzip or plain, UTF-8 or PowerShell's UTF-16."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from traceanalyzer.problems import TraceError

LARGEST_BYTES = 1 << 30
GZIP = b"\x1f\x8b"


def text_of(path: Path) -> str:
    """Decode a file, replacing undecodable bytes; TraceError if it cannot be read or is larger than 1 GiB."""
    try:
        with path.open("rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            data = gzip.GzipFile(fileobj=file).read(LARGEST_BYTES + 1) if compressed else file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST_BYTES:
        raise TraceError(str(path), "is larger than 1 GiB: not a result or a log")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def exists(path: str) -> bool:
    """Whether there is such a file or folder; False for texts that cannot be a path."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
