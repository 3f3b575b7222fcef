"""Fuzz ingest for longer, guided by coverage: ``python -m bench.fuzz [-max_total_time=600] [CORPUS]``.

Needs atheris, which is not among the project's dependencies (``pip install atheris``). Arguments are libFuzzer's.
Every input is read as a file; whatever is neither a result nor a TraceError of one line is a finding, which libFuzzer
writes to ``crash-*``. The seeds are the damaged files among the tests' data.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

CASES = Path(__file__).resolve().parent.parent / "tests" / "data" / "cases"
FOLDER = Path(tempfile.mkdtemp(prefix="traceanalyzer-fuzz-"))


def one_input(data: bytes) -> None:
    """Read one mutated file."""
    from traceanalyzer.problems import TraceError
    from traceanalyzer.read import ingest

    path = FOLDER / "trace.json"
    path.write_bytes(data)
    try:
        result = ingest([str(path)], cache=False, processes=0)
    except TraceError as error:
        if "\n" in str(error):
            raise AssertionError("an error of several lines") from error
        return
    for store in result.stores:
        store.scan().collect()


def seeds() -> str:
    """Write the starting corpus; return its directory."""
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for path in CASES.glob("[01]*.json*"):
        raw = path.read_bytes()
        (corpus / path.name).write_bytes(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        (corpus / f"{path.name}.packed").write_bytes(gzip.compress(raw, 1))
    return str(corpus)


def main() -> None:
    """Hand over to libFuzzer."""
    import atheris

    with atheris.instrument_imports(include=["traceanalyzer.read"]):
        import traceanalyzer.read  # noqa: F401
    atheris.Setup([*sys.argv, seeds()], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
