"""Measure candidates: correctness first, then rounds that time every candidate, in a shuffled order back and forth.

Everything that runs on the GPU runs in a worker process. A candidate that crashes, hangs or computes something wrong
is a failed candidate, and the run goes on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.problems import TraceError
from traceanalyzer.tune.journal import Journal
from traceanalyzer.tune.process import Worker, WorkerError
from traceanalyzer.tune.race import Result, Rounds, clearly_worse, results
from traceanalyzer.tune.session import Description, Task
from traceanalyzer.tune.sweep import Point

HARMLESS = ("WrongResultError", "OutOfResources", "CompilationError")
"""Failures after which the process can go on; after any other it is replaced, because a GPU error poisons it."""

START_TIMEOUT_S = 300


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        rounds: rounds at most.
        samples: samples of a candidate in a round.
        margin: how much slower than the best a candidate must be, as a share, to be dropped; null drops none.
        budget_s: for everything; null: no limit.
        timeout_s: for one step of one candidate (compile and check, or one round's samples).
        seed: of data, routing and order.
    """

    rounds: int = 10
    samples: int = 10
    margin: float | None = 0.02
    budget_s: float | None = None
    timeout_s: float = 120.0
    seed: int = 0


@dataclass(frozen=True)
class Job:
    """One problem with the candidates to measure on it.

    Attributes:
        problem: what is multiplied.
        routing: how rows fall on experts; null for a dense product.
        configs: the candidates.
    """

    problem: Problem
    routing: str | None
    configs: tuple[Config, ...]


@dataclass(frozen=True)
class Outcome:
    """What measuring one job gave.

    Attributes:
        job: what was measured.
        results: of every candidate, the best first.
        samples: of every candidate that has some, ms, by round.
        finished: false when the budget ran out before the last round.
    """

    job: Job
    results: tuple[Result, ...]
    samples: Mapping[Config, Rounds]
    finished: bool

    @property
    def best(self) -> Result | None:
        """The best candidate; null when none could be measured."""
        return next((result for result in self.results if result.verdict == "best"), None)


@dataclass(frozen=True)
class Bench:
    """Where candidates are measured, and the process that does it.

    Attributes:
        kernel: its name.
        backend: its name, as sweep files write it.
        worker: the measuring process.
        where: device, versions, and whether times mean anything.
    """

    kernel: str
    backend: str
    worker: Worker
    where: Description

    def point(self, job: Job, config: Config) -> Point:
        """Return a candidate without samples, as the journal identifies it."""
        shape: dict[str, Any] = dict(job.problem.to_dict())
        return Point(
            kernel=self.kernel,
            m=shape.pop("m"),
            concurrency=job.problem.tokens,
            config=config.to_dict(),
            shape=shape,
            backend=self.backend,
            routing=job.routing,
            device=self.where.device,
            versions=self.where.versions,
            measured=self.where.measured,
        )


def start_worker(module: str, device: str, environment: Mapping[str, str] | None = None) -> Worker:
    """Return the measuring process of a backend's module; ``device`` is ``gpu`` or ``interpret``."""
    interpreter = "1" if device == "interpret" else "0"
    variables = {"TRITON_DEFAULT_FP_FUSION": "1", "TRITON_INTERPRET": interpreter, **(environment or {})}
    return Worker("traceanalyzer.tune.measure_worker", [module, device], variables)


def open_bench(kernel: str, backend: str, worker: Worker) -> Bench:
    """Ask the process where it measures.

    Raises:
        TraceError: it cannot measure: there is no GPU, or the backend is not installed.
    """
    try:
        answer = worker.ask({"op": "describe"}, START_TIMEOUT_S)
    except WorkerError as failure:
        reason = str(failure).partition(": ")[2] or str(failure)
        hint = "; 'tune screen' ranks candidates without one, and --device interpret tries the machinery"
        raise TraceError(f"backend {backend}", reason + (hint if "GPU" in reason else "")) from None
    return Bench(kernel, backend, worker, Description(answer["device"], answer["versions"], answer["measured"]))


@dataclass
class _State:
    """What is known while a job runs."""

    measured: dict[Config, dict[int, tuple[float, ...]]] = field(default_factory=dict)
    failures: dict[Config, str] = field(default_factory=dict)
    dropped: set[Config] = field(default_factory=set)

    def alive(self, configs: Sequence[Config]) -> list[Config]:
        return [config for config in configs if config not in self.failures and config not in self.dropped]


def measure(
    bench: Bench,
    jobs: Sequence[Job],
    settings: Settings,
    journal: Journal,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Outcome, ...]:
    """Measure every job; the budget left is shared evenly by the jobs that are left.

    Args:
        bench: where.
        jobs: what.
        settings: how.
        journal: known results, and where new ones go.
        progress: called with what is done, steps done and steps in all.
        clock: seconds; for tests.

    Raises:
        TraceError: the journal cannot be written.
    """
    end = None if settings.budget_s is None else clock() + settings.budget_s
    outcomes = []
    for number, job in enumerate(jobs):
        share = None if end is None else clock() + max(0.0, end - clock()) / (len(jobs) - number)
        outcomes.append(_measure_job(bench, job, settings, journal, progress, _deadline(share, clock)))
    return tuple(outcomes)


def _deadline(end: float | None, clock: Callable[[], float]) -> Callable[[], bool]:
    return lambda: end is not None and clock() >= end


def _measure_job(
    bench: Bench,
    job: Job,
    settings: Settings,
    journal: Journal,
    progress: Callable[[str, int, int], None],
    time_is_up: Callable[[], bool],
) -> Outcome:
    state = _State()
    for config in job.configs:
        point = bench.point(job, config)
        if known := journal.rounds_of(point):
            state.measured[config] = known
        if reason := journal.failure_of(point):
            state.failures[config] = reason
    total = len(job.configs) * (settings.rounds + 1)
    finished = _check_all(bench, job, settings, journal, state, lambda n: progress("checking", n, total), time_is_up)
    for number in range(settings.rounds if finished else 0):
        alive = state.alive(job.configs)
        done = len(job.configs) * (number + 1)
        report = _reporter(progress, f"round {number + 1}, {len(alive)} left", done, total)
        if not _measure_round(bench, job, settings, journal, state, number, report, time_is_up):
            finished = False
            break
        if settings.margin is not None:
            state.dropped |= clearly_worse(state.measured, state.alive(job.configs), settings.margin)
    progress("done", total, total)
    found = results(job.configs, state.measured, state.failures, state.dropped)
    return Outcome(job, found, state.measured, finished)


def _reporter(progress: Callable[[str, int, int], None], what: str, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(what, before + done, total)


def _check_all(
    bench: Bench,
    job: Job,
    settings: Settings,
    journal: Journal,
    state: _State,
    progress: Callable[[int], None],
    time_is_up: Callable[[], bool],
) -> bool:
    """Check every candidate that is not known yet; return whether there was time for all."""
    for done, config in enumerate(job.configs):
        if config in state.failures or config in state.measured:
            continue
        if time_is_up():
            return False
        _ask(bench, job, config, settings, journal, state, {"op": "check"})
        progress(done + 1)
    return True


def _measure_round(
    bench: Bench,
    job: Job,
    settings: Settings,
    journal: Journal,
    state: _State,
    number: int,
    progress: Callable[[int], None],
    time_is_up: Callable[[], bool],
) -> bool:
    """Time everyone once, in this round's own order; return whether there was time for all."""
    alive = set(state.alive(job.configs))
    order = [config for config in round_order(job.configs, settings.seed, number) if config in alive]
    for done, config in enumerate(order):
        if number in state.measured.get(config, {}):
            continue
        if time_is_up():
            return False
        answer = _ask(bench, job, config, settings, journal, state, {"op": "sample", "count": settings.samples})
        if answer is not None:
            samples = tuple(answer["samples_ms"])
            state.measured.setdefault(config, {})[number] = samples
            journal.add_round(bench.point(job, config), number, samples)
        progress(done + 1)
    return True


def round_order(configs: Sequence[Config], seed: int, number: int) -> list[Config]:
    """Return the order of a round: shuffled in every even one, the same backwards in the next.

    Going back and forth cancels a drift within rounds, which would favour whoever happens to come first.
    """
    order = list(configs)
    random.Random(f"{seed} {number // 2}").shuffle(order)
    return order if number % 2 == 0 else order[::-1]


def _ask(
    bench: Bench,
    job: Job,
    config: Config,
    settings: Settings,
    journal: Journal,
    state: _State,
    question: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Ask the worker about a candidate; a failure is kept, and null is returned."""
    task = Task(bench.kernel, job.problem, config, job.routing or "uniform", settings.seed)
    try:
        return bench.worker.ask({**question, "task": task.to_dict()}, settings.timeout_s)
    except WorkerError as failure:
        reason = str(failure)
        if not reason.startswith(HARMLESS):
            bench.worker.stop()
        state.failures[config] = reason
        journal.add_failure(bench.point(job, config), reason)
        return None
