"""Time every analysis of a large trace that was ingested before: ``python -m bench.analyses``.

Each is timed as a command, from its start to its end with the result printed, and as a library call in a process that
has imported what it needs. The trace and its variant for the comparison are made as in ``bench.loading``; the ranks are
generated from a specification, since no recording of several GPUs is at hand. Results: bench/results/analyses.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls import GPU, MODEL
from bench.environment import ROOT
from bench.inputs import KINDS, build, period, replicate
from bench.measure import Measurement, measure
from bench.results import FOLDER, load, save
from bench.rounds import RETRIES, interleaved, undisturbed
from bench.sections import analyses as page

FASTER = 0.8
"""Factor on the largest kernel's time in the second trace of the comparison."""

RANKS = 2


@dataclass(frozen=True)
class Files:
    """The inputs.

    Attributes:
        trace: one rank's trace.
        after: the same with its largest kernel made faster.
        ranks: a directory with one trace a rank.
    """

    trace: Path
    after: Path
    ranks: Path


@dataclass(frozen=True)
class Analysis:
    """One analysis: the arguments of its command, and the input of its call."""

    command: tuple[str, ...]
    call: tuple[str, ...]


def analyses(files: Files, page_file: Path) -> dict[str, Analysis]:
    """Return every analysis by the key of its call in ``bench.calls``."""
    trace, after, ranks = str(files.trace), str(files.after), str(files.ranks)
    stated = ("--model", MODEL, "--gpu", GPU)
    return {
        "ingest": Analysis(("ingest", trace), (trace,)),
        "blocks": Analysis(("blocks", trace), (trace,)),
        "hotspots": Analysis(("hotspots", trace), (trace,)),
        "headroom": Analysis(("hotspots", trace, *stated), (trace,)),
        "roofline": Analysis(("roofline", trace), (trace,)),
        "idle": Analysis(("idle", trace), (trace,)),
        "diff": Analysis(("diff", trace, after), (trace, after)),
        "ranks": Analysis(("ranks", ranks), (ranks,)),
        "report": Analysis(("report", trace, "-o", str(page_file)), (trace,)),
    }


def make_files(traces: Path, kind: str, size_mb: int, folder: Path) -> tuple[Files, dict[str, float]]:
    """Make the inputs that are not there yet; return them and the sizes of their text in MB."""
    sizes: dict[str, float] = {}
    trace, after = folder / f"{kind}-{size_mb}.json.gz", folder / f"{kind}-{size_mb}-after.json.gz"
    sizes["trace"] = _sized(trace, lambda: build(traces, kind, size_mb * 1_000_000, trace))
    sizes["after"] = _sized(after, lambda: _faster(traces, kind, size_mb * 1_000_000, after))
    ranks = folder / f"ranks-{size_mb // RANKS}"
    sizes["ranks"] = _sized(ranks, lambda: _ranks(size_mb * 1_000_000 // RANKS, ranks))
    return Files(trace, after, ranks), sizes


def _sized(path: Path, make: Any) -> float:
    """Make a file unless it is there; the size of its text stands beside it, as ``bench.loading`` leaves it."""
    note = path.with_suffix(".bytes")
    if not (path.exists() and note.exists()):
        _tell(f"making {path.name}")
        note.write_text(str(make()))
    return int(note.read_text()) / 1e6


def _faster(traces: Path, kind: str, raw_bytes: int, target: Path) -> int:
    source, dropped = KINDS[kind]
    document = json.loads(gzip.decompress((traces / source).read_bytes()))
    events = [event for event in document["traceEvents"] if event.get("cat") not in dropped]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    times: Counter[str] = Counter()
    for event in kernels:
        times[event["name"]] += event["dur"]
    largest = times.most_common(1)[0][0]
    apart = period(events)
    for event in kernels:
        if event["name"] == largest:
            event["dur"] *= FASTER
    return replicate({**document, "traceEvents": events}, raw_bytes, target, apart)


def _ranks(raw_bytes: int, folder: Path) -> int:
    """Write the traces of a tensor-parallel job of two ranks, one of them late; return the size of their text."""
    from synthetic.ranks import JobSpec, Straggler, generate_job

    late = Straggler(rank=1, role="moe_down", extra_us=5.0)
    job = generate_job(JobSpec(tp=RANKS, layers=24, steps=16, stragglers=(late,), jitter=0.02))
    folder.mkdir(parents=True, exist_ok=True)
    # One period for all, so that the ranks still wait for each other in every copy.
    apart = period([event for document in job.documents.values() for event in document["traceEvents"]])
    return sum(replicate(document, raw_bytes, folder / name, apart) for name, document in job.documents.items())


def run(files: Files, folder: Path, repeats: int, warmups: int, retries: int, chosen: Sequence[str]) -> dict[str, Any]:
    """Time every analysis chosen, as a command and as a call; the two take turns with all others."""
    page_file = folder / "report.html"
    known = {name: one for name, one in analyses(files, page_file).items() if name in chosen}
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "store"), "PYTHONPATH": str(ROOT)}
    commands = {
        (name, way): [sys.executable, "-m", *arguments]
        for name, one in known.items()
        for way, arguments in (
            ("command", ("traceanalyzer.cli.main", *one.command)),
            ("call", ("bench.calls", name, *one.call)),
        )
    }
    for path in (files.trace, files.after, files.ranks):
        _tell(f"ingesting {path.name}")
        _checked(measure([sys.executable, "-m", "traceanalyzer.cli.main", "ingest", str(path)], environment))
    for command in commands.values():
        for _ in range(warmups):
            _checked(measure(command, environment))
    found: dict[str, Any] = {name: {"command": [], "call": []} for name in known}
    for repetition, key in interleaved({" ".join(key): repeats for key in commands}):
        name, _, way = key.partition(" ")
        done = undisturbed(lambda key=(name, way): measure(commands[key], environment), retries)  # type: ignore[misc]
        _checked(done.measurement)
        entry = {
            "repetition": repetition,
            "wall_s": done.measurement.wall_s,
            "cpu_s": done.measurement.cpu_s,
            "peak_mb": done.measurement.peak_mb,
            "others": done.others,
            "attempts": done.attempts,
            "disturbed": done.disturbed,
        }
        if way == "call":
            entry["call_s"] = json.loads(done.measurement.output.strip().splitlines()[-1])["call_s"]
        found[name][way].append(entry)
        _tell(f"{key}: {done.measurement.wall_s:.2f} s; others {done.others or 0:.0%}, attempt {done.attempts}")
    return found


def _checked(done: Measurement) -> None:
    if done.status != 0:
        raise RuntimeError(f"an analysis failed: {done.errors.strip()[-300:]}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def main() -> None:
    """Measure, write the results, print their table."""
    parser = argparse.ArgumentParser(prog="python -m bench.analyses", description="Time every analysis.")
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of real traces")
    parser.add_argument("--size", type=int, default=500, metavar="MB", help="of raw JSON (500); ranks have it together")
    parser.add_argument("--kind", choices=KINDS, default="python")
    parser.add_argument("--analyses", nargs="+", choices=list(page.TITLES), default=list(page.TITLES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warmups", type=int, default=1)
    parser.add_argument("--retries", type=int, default=RETRIES)
    parser.add_argument("--folder", type=Path, help="keep the inputs here, and use those that are here")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--build-only", action="store_true", help="only make the inputs in --folder")
    given = parser.parse_args()
    if not given.traces.is_dir():
        parser.error(f"no traces to replicate in {given.traces}: name their folder with --traces")
    if given.build_only and given.folder is None:
        parser.error("--build-only needs --folder")
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-bench-") as temporary:
        files, sizes = make_files(given.traces, given.kind, given.size, given.folder or Path(temporary))
        if given.build_only:
            return
        found = run(files, Path(temporary), given.repeats, given.warmups, given.retries, given.analyses)
        save(
            "analyses",
            {"kind": given.kind, "raw_mb": sizes, "ranks": RANKS, "analyses": found},
            settings={"repeats": given.repeats, "warmups": given.warmups, "retries": given.retries},
            folder=given.results,
            measured_in=Path(temporary),
        )
    document = load("analyses", given.results)
    if document is not None:
        print(page.render(document))  # noqa: T201


if __name__ == "__main__":
    main()
