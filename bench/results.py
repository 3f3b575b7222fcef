"""The files that results are kept in: one small JSON file a benchmark, with what is needed to read its times."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.environment import ROOT, commit, machine, today, versions
from bench.summary import rounded

FOLDER = ROOT / "bench" / "results"
SCHEMA = 1
ABSOLUTE = re.compile(r"(?:^|[\s=:'\"(])(?:/(?:[\w.-]+/)+[\w.-]*|[A-Za-z]:\\)")


def save(
    name: str,
    results: Any,
    *,
    settings: dict[str, Any],
    packages: Iterable[str] = (),
    folder: Path = FOLDER,
    measured_in: Path | None = None,
) -> Path:
    """Write what a benchmark found, with date, commit, machine and versions; return the file.

    Args:
        name: of the benchmark and of the file.
        results: plain data; floats are rounded to four digits.
        settings: what the benchmark was told.
        packages: distributions besides the usual ones whose versions matter.
        folder: where to write.
        measured_in: the folder in which the measured files lay; the working directory by default.

    Raises:
        ValueError: a string holds an absolute path or the name of the host.
    """
    document = {
        "schema": SCHEMA,
        "benchmark": name,
        "date": today(),
        "command": f"python -m bench.{Path(sys.argv[0]).stem}",
        "commit": commit(),
        "machine": machine(measured_in or Path.cwd()),
        "versions": versions(packages),
        "settings": settings,
        "results": rounded(results),
    }
    check_anonymous(document)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def load(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """Return a benchmark's results; null where it was not run."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def check_anonymous(document: Any) -> None:
    """Refuse what tells where something was measured.

    Raises:
        ValueError: a string holds an absolute path or the name of the host.
    """
    host = socket.gethostname()
    for text in _strings(document):
        if ABSOLUTE.search(text) or (len(host) > 3 and host in text):
            raise ValueError(f"an absolute path or the host's name in the results: {text[:120]!r}")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
