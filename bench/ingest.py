"""Compare ways of reading a large trace: ``python -m bench.ingest``.

Inputs are made by replicating real events (see ``inputs``). Every route runs in a process of its own, from the
compressed file to what it gives: frames for HolisticTraceAnalysis, Python objects for the JSON libraries, a store on
disk for traceanalyzer. Results are printed as a Markdown table and, with ``--json``, written to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.inputs import KINDS, build
from bench.measure import Measurement, measure

ROOT = Path(__file__).resolve().parent.parent
OURS = "import sys; from traceanalyzer.ingest import ingest; print(ingest([sys.argv[1]], {}).sources[0].events)"
ROUTES = {
    "traceanalyzer": OURS.format("cache=False"),
    "traceanalyzer, one process": OURS.format("cache=False, processes=0"),
    "json.load": "import gzip, json, sys; print(len(json.load(gzip.open(sys.argv[1]))['traceEvents']))",
    "orjson": "import gzip, sys, orjson; print(len(orjson.loads(gzip.open(sys.argv[1]).read())['traceEvents']))",
    "HTA": "import sys; from hta.common.trace import parse_trace_file; print(len(parse_trace_file(sys.argv[1])[1]))",
}
SECOND = "import sys; from traceanalyzer.trace import open_trace; print(open_trace(sys.argv[1]).device_events.height)"


@dataclass(frozen=True)
class Row:
    """One route on one input, medians over the repeats."""

    input: str
    raw_mb: float
    route: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    mb_per_s: float
    events: str


def main() -> None:
    """Build inputs, run the routes in turn, report."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-bench-", dir=options.folder) as folder:
        rows = [row for kind in options.kinds for row in _compare(kind, options, Path(folder))]
    table(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of real traces")
    parser.add_argument("--size", type=int, default=500, help="MB of raw JSON")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to put inputs (default: the system's temporary folder)")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"no traces to replicate in {options.traces}: name their folder with --traces")
    return options


def _compare(kind: str, options: argparse.Namespace, folder: Path) -> list[Row]:
    path = folder / f"{kind}.json.gz"
    raw = build(options.traces, kind, options.size * 1_000_000, path)
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    routes = {name: code for name, code in ROUTES.items() if name in options.routes and _possible(name)}
    found: dict[str, list[Measurement]] = {name: [] for name in routes}
    for _ in range(options.repeats):
        for name, code in routes.items():
            found[name].append(_run(code, path, environment))
    if "traceanalyzer" in routes:
        _run(SECOND, path, environment)
        found["traceanalyzer, from the cache"] = [_run(SECOND, path, environment) for _ in range(options.repeats)]
    path.unlink()
    return [_row(kind, raw, name, runs) for name, runs in found.items()]


def _possible(route: str) -> bool:
    return route != "orjson" or find_spec("orjson") is not None


def _run(code: str, path: Path, environment: dict[str, str]) -> Measurement:
    return measure([sys.executable, "-c", code, str(path)], environment)


def _row(kind: str, raw: int, route: str, runs: list[Measurement]) -> Row:
    wall = statistics.median(run.wall_s for run in runs)
    last = runs[-1].output.strip().splitlines()[-1:] or [""]
    return Row(
        input=kind,
        raw_mb=raw / 1e6,
        route=route,
        wall_s=wall,
        cpu_s=statistics.median(run.cpu_s for run in runs),
        peak_mb=max(run.peak_mb for run in runs),
        mb_per_s=raw / 1e6 / wall,
        events=last[0] if runs[-1].status == 0 else f"failed: {last[0]}",
    )


def table(rows: list[Row]) -> None:
    """Print the rows as a Markdown table, with each route's wall time in relation to traceanalyzer's."""
    print("| input | raw MB | route | wall s | CPU s | peak MB | MB/s | times ours | events |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|---|")  # noqa: T201
    for row in rows:
        ours = next((r.wall_s for r in rows if r.input == row.input and r.route == "traceanalyzer"), None)
        ratio = "" if ours is None else f"{row.wall_s / ours:.1f}"
        print(  # noqa: T201
            f"| {row.input} | {row.raw_mb:.0f} | {row.route} | {row.wall_s:.2f} | {row.cpu_s:.2f} | {row.peak_mb:.0f} "
            f"| {row.mb_per_s:.0f} | {ratio} | {row.events} |"
        )


if __name__ == "__main__":
    main()
