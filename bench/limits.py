"""What stands between the time of ingest and its limits: ``python -m bench.limits [--size 500]``.

Each stage of reading a .json.gz runs alone, on data that the stages before it left in memory: reading, decompression,
finding borders of events, decoding JSON into objects that nobody takes, building columns, writing Parquet. Then whole
runs, in one process and with workers. ``bench.copies`` counts the bytes that are copied on the way.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.copies import copies
from bench.environment import ROOT
from bench.inputs import KINDS, build
from bench.results import FOLDER, save
from bench.summary import spread

Stage = Callable[[], object]


def main() -> None:
    """Measure every stage on every kind of trace, and keep the results."""
    options = _options()
    if options.stage:
        print(json.dumps(_measured(options.stage, options.file, options.repeats)))  # noqa: T201
        return
    kinds = {}
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-bench-", dir=options.folder) as folder:
        for kind in options.kinds:
            path = Path(folder) / f"{kind}.json.gz"
            raw = build(options.traces, kind, options.size * 1_000_000, path)
            stages = {name: _in_own_process(name, path, options.repeats) for name in STAGES}
            kinds[kind] = {
                "raw_mb": raw / 1e6,
                "file_mb": path.stat().st_size / 1e6,
                "stages": stages,
                "copies": copies(path),
            }
            path.unlink()
            print(json.dumps({kind: kinds[kind]}, indent=1), flush=True)  # noqa: T201
    settings = {"size_mb": options.size, "repeats": options.repeats}
    save("limits", {"kinds": kinds}, settings=settings, folder=options.results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of real traces")
    parser.add_argument("--size", type=int, default=500, help="MB of raw JSON")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--repeats", type=int, default=3, help="runs of each stage")
    parser.add_argument("--folder", type=Path, help="where to put inputs (default: the system's temporary folder)")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder for the results")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.stage and not options.traces.is_dir():
        parser.error(f"no traces to replicate in {options.traces}: name their folder with --traces")
    return options


def _in_own_process(stage: str, path: Path, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.limits", "--stage", stage, "--file", str(path), "--repeats", str(repeats)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measured(stage: str, path: Path, repeats: int) -> dict[str, Any]:
    """Run a stage some times after what it needs was made ready; return the spread of wall and CPU time in seconds."""
    ready = STAGES[stage](path)
    wall, cpu = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), _cpu()
        ready()
        wall.append(time.perf_counter() - began)
        cpu.append(_cpu() - used)
    return {"wall_s": spread(wall), "cpu_s": spread(cpu)}


def _cpu() -> float:
    """CPU time of this process and of the children that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _read(path: Path) -> Stage:
    def run() -> None:
        with path.open("rb") as file:
            while file.read(64 << 10):
                pass

    return run


def _blocks(path: Path) -> list[bytes]:
    from traceanalyzer.read import inputs

    with inputs.opened(str(path)) as plain:
        plain.peel()
        return list(plain)


def _decompress(path: Path) -> Stage:
    from traceanalyzer.read import inputs

    def run() -> None:
        with inputs.opened(str(path)) as plain:
            plain.peel()
            for _ in plain:
                pass

    return run


def _cut(path: Path, *, careful: bool = False) -> Stage:
    from traceanalyzer.read.streaming import WINDOW_BYTES
    from traceanalyzer.read.trace_text import TraceText

    blocks = _blocks(path)

    def run() -> None:
        for _ in TraceText(blocks, WINDOW_BYTES, careful=careful, count_lines=careful).windows():
            pass

    return run


def _windows(path: Path) -> list[Any]:
    from traceanalyzer.read.streaming import WINDOW_BYTES
    from traceanalyzer.read.trace_text import TraceText

    return list(TraceText(_blocks(path), WINDOW_BYTES, careful=False, count_lines=False).windows())


def _parse(path: Path, *, with_args: bool) -> Stage:
    from traceanalyzer.read.decode import ARGS, EVENTS, _chunks, _decode_args

    windows = _windows(path)

    def run() -> None:
        for window in windows:
            for text in _chunks(window.buffer, window.size):
                events = EVENTS.decode(text)
                if with_args:
                    _decode_args(ARGS, [event.args for event in events])

    return run


def _frames(path: Path) -> list[Any]:
    from traceanalyzer.read.decode import EventWords, decode_text

    words = EventWords()
    return [decode_text(window.buffer, words, exact=False, size=window.size).frames for window in _windows(path)]


def _columns(path: Path) -> Stage:
    from traceanalyzer.read.decode import EventWords, decode_text

    windows = _windows(path)

    def run() -> None:
        words = EventWords()
        for window in windows:
            decode_text(window.buffer, words, exact=False, size=window.size)

    return run


def _write(path: Path) -> Stage:
    from traceanalyzer.read.window import PartWriter

    frames = _frames(path)

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            writer = PartWriter(Path(folder), "b")
            for each in frames:
                writer.add(each)
            writer.flush()

    return run


def _whole(path: Path, processes: int | None) -> Stage:
    from traceanalyzer.read import ingest

    return lambda: ingest([str(path)], cache=False, processes=processes)


STAGES: dict[str, Callable[[Path], Stage]] = {
    "read": _read,
    "decompress": _decompress,
    "cut": _cut,
    "cut, from a pipe": lambda path: _cut(path, careful=True),
    "parse": lambda path: _parse(path, with_args=False),
    "parse, args too": lambda path: _parse(path, with_args=True),
    "parse and columns": _columns,
    "write": _write,
    "whole, one process": lambda path: _whole(path, 0),
    "whole, workers": lambda path: _whole(path, None),
}
"""A stage is made ready with the file, then timed. Stages that hold all of the text need that much memory."""


if __name__ == "__main__":
    main()
