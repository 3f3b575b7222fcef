"""Memory of reading a trace that is never stored: ``python -m bench.stream [--size 4000]``.

A generator writes a trace of up to ``--size`` MB into a named pipe, plain or through gzip, and traceanalyzer reads the
pipe. What it finds is compared with what the generator counted. Growth of memory shows over four sizes; then the first
commands on the store are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.environment import ROOT
from bench.inputs import KINDS
from bench.measure import Measurement, measure
from bench.results import FOLDER, save

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the largest size: those that growth is told from."""

READ = """
import json, sys
from pathlib import Path
from traceanalyzer.read import ingest
found = ingest([sys.argv[1]], output=Path(sys.argv[2]), cache=False)
print(json.dumps({"text_bytes": found.effort.text_bytes, "processes": found.effort.processes}))
"""
COMMANDS = ("ingest", "blocks", "hotspots")
"""Commands run on the store, each the first of its kind; ``ingest`` prints the overview."""


@dataclass(frozen=True)
class Run:
    """One trace through one pipe.

    Attributes:
        raw_mb: text in 10^6 bytes.
        packed: whether it went through gzip.
        events, kernels: in the trace.
        wall_s, cpu_s, peak_mb, others_s: of reading, see Measurement.
        workers: processes that decoded besides the main one.
        store_mb: size of what was written.
        differences: where what was read is not what was written; empty where all is equal.
        commands: what each of COMMANDS took on the store.
    """

    raw_mb: float
    packed: bool
    events: int
    kernels: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    others_s: float | None
    workers: int
    store_mb: float
    differences: list[str]
    commands: list[dict[str, Any]]


def main() -> None:
    """Run every size, plain and packed, and keep the results."""
    options = _options()
    runs = []
    for packed in (False, True):
        for share in SHARES:
            with tempfile.TemporaryDirectory(prefix="traceanalyzer-bench-", dir=options.folder) as folder:
                runs.append(_run(options, options.size * share, Path(folder), packed=packed))
            print(json.dumps(asdict(runs[-1])), flush=True)  # noqa: T201
    document = {
        "runs": [asdict(run) for run in runs],
        "slope_mb_per_gb": {
            name: slope([run for run in runs if run.packed == packed])
            for name, packed in (("plain", False), ("gzip", True))
        },
    }
    save("stream", document, settings={"size_mb": options.size, "kind": options.kind}, folder=options.results)


def slope(runs: Sequence[Run]) -> float:
    """Return how many MB of peak memory a further GB of text adds, by least squares."""
    return statistics.linear_regression([run.raw_mb / 1e3 for run in runs], [run.peak_mb for run in runs]).slope


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of real traces")
    parser.add_argument("--kind", choices=KINDS, default="kernels")
    parser.add_argument("--size", type=float, default=4000, help="MB of raw JSON of the largest trace")
    parser.add_argument("--folder", type=Path, help="where stores are written (default: the system's temporary folder)")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder for the results")
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"no traces to replicate in {options.traces}: name their folder with --traces")
    return options


def _run(options: argparse.Namespace, size: float, folder: Path, *, packed: bool) -> Run:
    pipe, truth_file, store = folder / "pipe", folder / "truth.json", folder / "store"
    os.mkfifo(pipe)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    generate = ["-m", "bench.generator", "--size", str(size), "--to", str(pipe), "--truth", str(truth_file)]
    generate += ["--traces", str(options.traces), "--kind", options.kind, *(["--gzip"] if packed else [])]
    with subprocess.Popen([sys.executable, *generate], env=environment) as generator:
        try:
            read = measure([sys.executable, "-c", READ, str(pipe), str(store)], environment)
        finally:
            if not truth_file.exists():
                pipe.unlink()
                generator.terminate() if generator.poll() is None else None
    if read.status != 0:
        raise SystemExit(f"reading failed: {read.errors}")
    truth, told = json.loads(truth_file.read_text()), json.loads(read.output)
    return Run(
        raw_mb=truth["text_bytes"] / 1e6,
        packed=packed,
        events=truth["events"],
        kernels=truth["kernels"],
        wall_s=read.wall_s,
        cpu_s=read.cpu_s,
        peak_mb=read.peak_mb,
        others_s=read.others_s,
        workers=told["processes"],
        store_mb=sum(path.stat().st_size for path in store.iterdir()) / 1e6,
        differences=differences(truth, told, store),
        commands=[_command(name, store, environment) for name in COMMANDS],
    )


def differences(truth: dict[str, Any], told: dict[str, Any], directory: Path) -> list[str]:
    """Compare a store with what the generator counted."""
    import polars as pl

    from traceanalyzer.read import Store

    store = Store.read(directory)
    kernels = store.scan(["kernel"]).group_by(pl.col("name").cast(pl.String)).agg(pl.len(), pl.col("dur_ns").sum())
    by_name = {name: [number, ns] for name, number, ns in kernels.collect().iter_rows()}
    found = {
        "text_bytes": told["text_bytes"],
        "events": store.metadata.source.events,
        "kernels": sum(number for number, _ in by_name.values()),
        "gpu_ns": sum(ns for _, ns in by_name.values()),
    }
    wrong = [f"{key}: {found[key]} read, {truth[key]} written" for key in found if found[key] != truth[key]]
    names = [name for name in by_name.keys() | truth["by_name"] if by_name.get(name) != truth["by_name"].get(name)]
    return [*wrong, *(f"count and time of {name[:80]!r}" for name in sorted(names))]


def _command(name: str, store: Path, environment: dict[str, str]) -> dict[str, Any]:
    took: Measurement = measure([sys.executable, "-m", "traceanalyzer", name, str(store), "--json"], environment)
    if took.status != 0:
        raise SystemExit(f"{name} failed: {took.errors}")
    return {"command": name, "wall_s": took.wall_s, "cpu_s": took.cpu_s, "peak_mb": took.peak_mb}


if __name__ == "__main__":
    main()
