"""Opening the fake backend in a real worker process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.places import ROOT
from traceanalyzer.commands.tune.measure.bench import MeasuringBench, open_bench, start_worker
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.run.compute import Job, JobOutcome, Settings, measure
from traceanalyzer.kernels.problem import Config, Problem

PROBLEM = Problem(16, 256, 256)
GOOD = (Config(16, 16, 64), Config(16, 32, 64), Config(16, 64, 64), Config(16, 128, 64))


@contextmanager
def fake_bench(log: Path | None = None, **variables: str) -> Iterator[MeasuringBench]:
    """Yield a bench whose worker runs the fake backend; ``log`` receives one line a question."""
    environment = {"PYTHONPATH": str(ROOT)} | ({"FAKE_LOG": str(log)} if log else {}) | variables
    with start_worker("tests.support.fake_backend", "gpu", environment) as worker:
        yield open_bench("dense", "fake", worker)


def outcome_of(
    configs: tuple[Config, ...], settings: Settings, *, journal: Journal | None = None, log: Path | None = None
) -> JobOutcome:
    """Measure one job on the fake backend."""
    with fake_bench(log) as bench:
        return measure(bench, [Job(PROBLEM, None, configs)], settings, journal or Journal(None))[0]


def verdicts(outcome: JobOutcome) -> dict[Config, str]:
    """Return each candidate's verdict."""
    return {result.launch: result.verdict for result in outcome.results}
