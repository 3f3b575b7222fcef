"""Measure candidates: correctness first, then rounds that time every candidate, in a shuffled order back and forth.

A candidate that crashes, hangs or computes something wrong is a failed candidate, and the run goes on.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.measure.bench import LostBenchError, MeasuringBench
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.measure.measuring import MeasuringTask
from traceanalyzer.commands.tune.measure.race import Rounds, clearly_worse, results
from traceanalyzer.commands.tune.measure.result import MeasuredTile
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.workers import WorkerError

CHECK_SHARE = 0.5
"""How much of a problem's time may go into checks; what is not checked by then is not measured. Chosen, not fitted."""


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        rounds: rounds at most.
        samples: samples of a candidate in a round.
        margin: how much slower than the best a candidate must be, as a share, to be dropped; ``None`` drops none.
        budget_s: for everything; ``None``: no limit.
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
        routing: how rows are spread over experts; ``None`` for a dense product.
        configs: the candidates.
    """

    problem: Problem
    routing: str | None
    configs: tuple[Config, ...]


@dataclass(frozen=True)
class JobOutcome:
    """What measuring one job gave.

    Attributes:
        job: what was measured.
        results: of every candidate, the best first.
        samples: of every candidate that has some, ms, by round.
        cut_short: why not all was measured; ``None`` when all was.
    """

    job: Job
    results: tuple[MeasuredTile, ...]
    samples: Mapping[Config, Rounds]
    cut_short: str | None

    @property
    def finished(self) -> bool:
        """Whether all was measured."""
        return self.cut_short is None

    @property
    def best(self) -> MeasuredTile | None:
        """The best candidate; ``None`` when none could be measured."""
        return next((result for result in self.results if result.verdict == "best"), None)


class _OutOfTimeError(Exception):
    """A job's time is up."""


@dataclass
class _RunningJob:
    """One job while it is measured.

    Attributes:
        bench, job, settings, journal: where, what, how, and what remembers it.
        clock: seconds.
        start, end: of the job, on this clock; the end is infinite without a budget.
        measured: samples of every candidate, by round.
        right: candidates whose result was right.
        failures: why candidates failed.
        dropped: who is out of the race.
    """

    bench: MeasuringBench
    job: Job
    settings: Settings
    journal: Journal
    clock: Callable[[], float]
    start: float
    end: float
    measured: dict[Config, dict[int, tuple[float, ...]]] = field(default_factory=dict)
    right: set[Config] = field(default_factory=set)
    failures: dict[Config, str] = field(default_factory=dict)
    dropped: set[Config] = field(default_factory=set)

    def __post_init__(self) -> None:
        for config in self.job.configs:
            point = self.point(config)
            if known := self.journal.rounds_of(point):
                self.measured[config] = known
                self.right.add(config)
            if reason := self.journal.failure_of(point):
                self.failures[config] = reason

    def point(self, config: Config) -> SweepPoint:
        """Return a candidate as the journal identifies it."""
        return self.bench.point(self.job.problem, self.job.routing, config)

    @property
    def alive(self) -> list[Config]:
        """Who is timed in the next round."""
        return [c for c in self.job.configs if c in self.right and c not in self.failures and c not in self.dropped]

    @property
    def unchecked(self) -> list[Config]:
        """Who was not run yet."""
        return [c for c in self.job.configs if c not in self.right and c not in self.failures]

    @property
    def checks_are_over(self) -> bool:
        """Whether something is right, and what is left of the time belongs to timing it."""
        return bool(self.right) and self.clock() >= self.start + CHECK_SHARE * (self.end - self.start)

    def ask(self, config: Config, question: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask about a candidate; a failure is kept, and ``None`` is returned.

        Raises:
            _OutOfTimeError: the job's time is up.
            LostBenchError: nothing can be measured any more.
        """
        if self.clock() >= self.end:
            raise _OutOfTimeError
        task = MeasuringTask(
            self.bench.kernel, self.job.problem, config, self.job.routing or "uniform", self.settings.seed
        )
        try:
            return self.bench.ask(task, question, self.settings.timeout_s)
        except WorkerError as failure:
            self.failures[config] = str(failure)
            self.journal.add_failure(self.point(config), str(failure))
            return None


def measure(
    bench: MeasuringBench,
    jobs: Sequence[Job],
    settings: Settings,
    journal: Journal,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[JobOutcome, ...]:
    """Measure every job; the budget left is shared evenly by the jobs that are left.

    The journal holds known results and gets new ones. Progress is told what is done, steps done and steps in all.

    Raises:
        TraceError: the journal cannot be written.
    """
    end = math.inf if settings.budget_s is None else clock() + settings.budget_s
    outcomes = []
    for number, job in enumerate(jobs):
        start = clock()
        share = max(0.0, end - start) / (len(jobs) - number)
        outcomes.append(_measure_job(_RunningJob(bench, job, settings, journal, clock, start, start + share), progress))
    return tuple(outcomes)


def _measure_job(run: _RunningJob, progress: Callable[[str, int, int], None]) -> JobOutcome:
    job, settings = run.job, run.settings
    steps = len(job.configs)
    total = steps * (settings.rounds + 1)
    cut_short = None
    try:
        _check_all(run, lambda done: progress("checking", done, total))
        for number in range(settings.rounds):
            _measure_round(run, number, _reporter(progress, run, number, steps, total))
            if settings.margin is not None:
                run.dropped |= clearly_worse(run.measured, run.alive, settings.margin)
        if run.unchecked:
            cut_short = f"checks took half of the budget and did not reach {len(run.unchecked)} candidates"
    except _OutOfTimeError:
        cut_short = "the budget ran out before the last round"
    except LostBenchError as lost:
        cut_short = str(lost)
    progress("done", total, total)
    return JobOutcome(job, results(job.configs, run.measured, run.failures, run.dropped), run.measured, cut_short)


def _reporter(
    progress: Callable[[str, int, int], None], run: _RunningJob, number: int, steps: int, total: int
) -> Callable[[int], None]:
    what = f"round {number + 1}, {len(run.alive)} left"
    return lambda done: progress(what, steps * (number + 1) + done, total)


def _check_all(run: _RunningJob, progress: Callable[[int], None]) -> None:
    """Check every candidate that is not known yet, as far as the time for checks allows."""
    waiting = run.unchecked
    for done, config in enumerate(waiting, len(run.job.configs) - len(waiting)):
        if run.checks_are_over:
            return
        if run.ask(config, {"op": "check"}) is not None:
            run.right.add(config)
        progress(done + 1)


def _measure_round(run: _RunningJob, number: int, progress: Callable[[int], None]) -> None:
    """Time everyone once, in this round's own order."""
    alive = set(run.alive)
    order = [config for config in round_order(run.job.configs, run.settings.seed, number) if config in alive]
    for done, config in enumerate(order):
        if number in run.measured.get(config, {}):
            continue
        answer = run.ask(config, {"op": "sample", "count": run.settings.samples})
        if answer is not None:
            samples = tuple(answer["samples_ms"])
            run.measured.setdefault(config, {})[number] = samples
            run.journal.add_round(run.point(config), number, samples)
        progress(done + 1)


def round_order(configs: Sequence[Config], seed: int, number: int) -> list[Config]:
    """Return the order of a round: shuffled in every even one, the same backwards in the next.

    Going back and forth cancels a drift within rounds, which would favour whoever happens to come first.
    """
    order = list(configs)
    random.Random(f"{seed} {number // 2}").shuffle(order)
    return order if number % 2 == 0 else order[::-1]
