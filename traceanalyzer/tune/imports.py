"""Read measurements from any format that is known."""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.problems import TraceError
from traceanalyzer.tune.seed_lines import looks_like_seed_lines, parse_seed_lines
from traceanalyzer.tune.sweep import Sweep, parse_lines


def import_points(path: Path, top_k: int | None = None) -> Sweep:
    """Return the points of a file: a sweep of ours, or a log of ``conc=... bm=...`` lines.

    Args:
        path: the file.
        top_k: experts a token, for logs that name the concurrency only.

    Raises:
        TraceError: the file cannot be read, is of no known format, or holds no usable point.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TraceError(str(path), error.strerror or "cannot be read") from None
    if looks_like_seed_lines(text):
        points, warnings = parse_seed_lines(text, str(path), top_k)
    elif text.lstrip().startswith("{"):
        points, warnings = parse_lines(text, str(path))
    else:
        known = "sweeps of this program, logs of 'conc=N bm=N ...' lines"
        raise TraceError(str(path), f"of no known format (known: {known})")
    if not points:
        raise TraceError(str(path), "no usable point in it" + (f": {warnings[0].message}" if warnings else ""))
    return Sweep(points, warnings)
