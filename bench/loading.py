"""Hold ways of reading a large trace against each other: ``python -m bench.loading``.

Inputs are made by replicating real events (see ``inputs``). Every route (see ``routes``) answers the same question of
the same file in a process of its own; their answers are compared. Routes take turns, a run during which others used the
machine is repeated. Results go to bench/results/loading.json; ``python -m bench.publish`` makes the page of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.answers import Answer, differences
from bench.environment import ROOT
from bench.inputs import KINDS, build
from bench.loading_options import Options, options_from
from bench.measure import Measurement, measure
from bench.results import load, save
from bench.rounds import Run, interleaved, undisturbed
from bench.routes import OURS, ROUTES
from bench.sections import loading as page

REFERENCE = "json"
"""Whose answer is held to be right: the standard library's, added up in plain Python."""


@dataclass(frozen=True)
class Input:
    """A file that is read.

    Attributes:
        kind: key of ``inputs.KINDS``.
        size_mb: size asked for.
        path: where it lies.
        raw_mb: size of its text.
    """

    kind: str
    size_mb: int
    path: Path
    raw_mb: float


@dataclass
class Row:
    """One route on one input.

    Attributes:
        kind: of the input.
        size_mb: of the input, as asked for.
        route: key of ``ROUTES``.
        runs: one entry a repetition.
        warmups: uncounted runs before.
        skipped: why there are none, or no more.
        answer: ``equal``, or in what it differs; null where nothing was answered.
    """

    kind: str
    size_mb: int
    route: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    warmups: int = 0
    skipped: str | None = None
    answer: str | None = None


class Loading:
    """A whole benchmark: inputs by size, so that a route that is too slow is left out of the larger ones."""

    def __init__(self, options: Options, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.inputs: list[dict[str, Any]] = []
        self.rows: list[Row] = []
        self.settings = options.settings()
        if options.resume:
            self._resume(load("loading", options.results))

    def run(self) -> None:
        """Measure everything; the results are written after every round, so that an interrupted run is not lost."""
        for kind in self.options.kinds:
            for size in sorted(self.options.sizes):
                repeats = {route: self.options.repeats_of(kind, route, size) for route in self.options.routes}
                if any(repeats.values()):
                    self._compare(kind, size, {route: count for route, count in repeats.items() if count})

    def _resume(self, before: dict[str, Any] | None) -> None:
        """Take over what an earlier run measured of other inputs, and what it was told."""
        if before is None:
            return
        again = {(kind, size) for kind in self.options.kinds for size in self.options.sizes}
        held = before["results"]
        self.inputs = [one for one in held["inputs"] if (one["kind"], one["size_mb"]) not in again]
        self.rows = [Row(**row) for row in held["rows"] if (row["kind"], row["size_mb"]) not in again]
        self.settings["resumed"] = before["settings"] | {"date": before["date"], "commit": before["commit"]}

    def save(self) -> None:
        """Write what was measured so far."""
        self.inputs.sort(key=lambda one: (list(KINDS).index(one["kind"]), one["size_mb"]))
        path = save(
            "loading",
            {"inputs": self.inputs, "rows": [vars(row) for row in self.rows]},
            settings=self.settings,
            packages=[route.package for route in ROUTES.values() if route.package],
            folder=self.options.results,
            measured_in=self.folder,
        )
        _tell(f"wrote {path.name}")

    def _compare(self, kind: str, size: int, repeats: Mapping[str, int]) -> None:
        file = self._input(kind, size)
        rows = {route: Row(kind, size, route, warmups=self.options.warmups_of(kind, route, size)) for route in repeats}
        self.rows += rows.values()
        for route, row in rows.items():
            row.skipped = self._too_much(row, file.raw_mb) if ROUTES[route].possible else "not installed"
            if row.skipped:
                _tell(f"{kind} {size} MB, {route}: skipped: {row.skipped}")
        left = {route: count for route, count in repeats.items() if not rows[route].skipped}
        answers: dict[str, list[Answer | None]] = {route: [] for route in left}
        if "store" in left:
            self._once("store", file)
        finished = 0
        for route in left:
            for _ in range(rows[route].warmups):
                if not rows[route].skipped:
                    rows[route].skipped = _failure(self._once(route, file))
        for repetition, route in interleaved(left):
            if repetition > finished:
                finished = repetition
                self._keep(file, rows, answers)
            row = rows[route]
            if not row.skipped:
                run = undisturbed(lambda route=route: self._once(route, file), self.options.retries)  # type: ignore[misc]
                row.skipped = _failure(run.measurement)
                if not row.skipped:
                    row.runs.append(_entry(repetition, run))
                    answers[route].append(Answer.from_output(run.measurement.output))
                _tell(_line(row, run))
        self._keep(file, rows, answers)
        shutil.rmtree(self.folder / "store", ignore_errors=True)
        if not self.options.keep:
            file.path.unlink()

    def _input(self, kind: str, size: int) -> Input:
        path = self.folder / f"{kind}-{size}.json.gz"
        note = path.with_suffix(".bytes")
        if not (path.exists() and note.exists()):
            _tell(f"making {path.name}")
            note.write_text(str(build(self.options.traces, kind, size * 1_000_000, path)))
        return Input(kind, size, path, int(note.read_text()) / 1e6)

    def _too_much(self, row: Row, raw_mb: float) -> str | None:
        """Tell why a route need not be tried: by what it took of the next smaller input, if it grows linearly."""
        smaller = [other for other in self.rows if (other.kind, other.route) == (row.kind, row.route) and other != row]
        if not smaller:
            return None
        last = max(smaller, key=lambda other: other.size_mb)
        if last.skipped:
            return f"not tried: {last.skipped} at {last.size_mb} MB"
        if not last.runs:
            return None
        sizes = {entry["size_mb"]: entry["raw_mb"] for entry in self.inputs if entry["kind"] == row.kind}
        larger = raw_mb / sizes[last.size_mb]
        seconds, memory = (max(run[key] for run in last.runs) * larger for key in ("wall_s", "peak_mb"))
        limits = self.options.limits_of(row.route)
        if limits.seconds is not None and seconds > limits.seconds:
            return f"would take about {seconds:.0f} s, the limit is {limits.seconds:.0f} s"
        if limits.memory_mb is not None and memory > limits.memory_mb:
            return f"would need about {memory / 1000:.1f} GB, the limit is {limits.memory_mb / 1000:.1f} GB"
        return None

    def _once(self, route: str, file: Input) -> Measurement:
        """Run a route. Each run of ours starts with an empty cache, but for the one from the store."""
        cache = self.folder / ("store" if ROUTES[route].store else "cache")
        environment = os.environ | {
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(ROOT),
            "HTA_DISABLE_NS_ROUNDING": "1",
            "TMPDIR": str(self.folder),
        }
        _into_page_cache(file.path)
        try:
            command = [sys.executable, "-m", "bench.routes", route, str(file.path)]
            return measure(command, environment, self.options.limits_of(route))
        finally:
            shutil.rmtree(self.folder / "cache", ignore_errors=True)

    def _keep(self, file: Input, rows: Mapping[str, Row], answers: Mapping[str, Sequence[Answer | None]]) -> None:
        """Judge and write what there is so far."""
        self._judge(rows, answers)
        self._note(file, answers)
        self.save()

    @staticmethod
    def _judge(rows: Mapping[str, Row], answers: Mapping[str, Sequence[Answer | None]]) -> None:
        """Hold every answer of every run against the reference."""
        order = [REFERENCE, OURS, *answers]
        reference = next((found for route in order for found in answers.get(route, ()) if found is not None), None)
        for route, given in answers.items():
            if given and reference is not None:
                off = [["no answer"] if one is None else differences(one, reference) for one in given]
                rows[route].answer = next(("; ".join(found) for found in off if found), "equal")
                if rows[route].answer != "equal":
                    _tell(f"{route} DISAGREES: {rows[route].answer}")

    def _note(self, file: Input, answers: Mapping[str, Sequence[Answer | None]]) -> None:
        known = next((found for given in answers.values() for found in given if found is not None), None)
        others = [one for one in self.inputs if (one["kind"], one["size_mb"]) != (file.kind, file.size_mb)]
        own = {
            "kind": file.kind,
            "size_mb": file.size_mb,
            "raw_mb": file.raw_mb,
            "file_mb": file.path.stat().st_size / 1e6,
            "device_events": known.events if known else None,
        }
        self.inputs = [*others, own]


def _into_page_cache(path: Path) -> None:
    """Read a file, so that a route that filled the memory does not slow down the next one."""
    with path.open("rb") as opened:
        while opened.read(1 << 24):
            pass


def _entry(repetition: int, run: Run) -> dict[str, Any]:
    return {
        "repetition": repetition,
        "wall_s": run.measurement.wall_s,
        "cpu_s": run.measurement.cpu_s,
        "peak_mb": run.measurement.peak_mb,
        "others": run.others,
        "attempts": run.attempts,
        "disturbed": run.disturbed,
    }


def _failure(found: Measurement) -> str | None:
    """Return why a run does not count, without paths of this machine; null where it does."""
    if found.stopped:
        return found.stopped
    if found.status == 0:
        return None
    last = found.errors.strip().splitlines()[-1:] or [f"exit status {found.status}"]
    return "failed: " + re.sub(r"\S*/\S*", "...", last[0])[:160]


def _line(row: Row, run: Run) -> str:
    took = f"{run.measurement.wall_s:.2f} s, {run.measurement.cpu_s:.2f} s CPU, {run.measurement.peak_mb:.0f} MB"
    others = "unknown" if run.others is None else f"{run.others:.0%}"
    tail = f", {row.skipped}" if row.skipped else ""
    return f"{row.kind} {row.size_mb} MB, {row.route}: {took}; others {others}, attempt {run.attempts}{tail}"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def main() -> None:
    """Measure, write the results, print their tables."""
    options = options_from(sys.argv[1:])
    if options.build_only and options.folder is None:
        sys.exit("--build-only needs --folder")
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        options = replace(options, keep=True)
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-bench-") as temporary:
        bench = Loading(options, options.folder or Path(temporary))
        if options.build_only:
            for kind in options.kinds:
                for size in options.sizes:
                    if any(options.repeats_of(kind, route, size) for route in options.routes):
                        bench._input(kind, size)
            return
        bench.run()
    document = load("loading", options.results)
    if document is not None:
        print(page.render(document))  # noqa: T201


if __name__ == "__main__":
    main()
