"""Compile every candidate for a target, drop what cannot run, rank the rest. No GPU is needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from traceanalyzer.commands.tune.compile.candidate_order import Score, ordered, score
from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target
from traceanalyzer.workers import LateWorkerError, Worker, WorkerError

if TYPE_CHECKING:
    from traceanalyzer.commands.tune.compile.device import Device
    from traceanalyzer.kernels.launch import KernelSpec


@dataclass(frozen=True)
class NotCompiled:
    """Why there are no facts of a candidate.

    Attributes:
        reason: in words.
        late: whether it only took too long: a busy machine is slow, and what was not compiled may well run.
    """

    reason: str
    late: bool = False


Compiled = CompileFacts | NotCompiled


@dataclass(frozen=True)
class Candidate:
    """One screened configuration.

    Attributes:
        config: the meta-parameters.
        rank: 1 is the most promising; null when it has none.
        fits: whether it can run; null when it was not compiled in time.
        facts: what the compiler made of it; null when there are none.
        score: what the rank rests on; null without a rank.
        work_ratio: its vector work over the least of all candidates; null without a rank.
        reason: why it has no rank, or null.
    """

    config: Config
    rank: int | None
    fits: bool | None
    facts: CompileFacts | None
    score: Score | None
    work_ratio: float | None
    reason: str | None


@dataclass(frozen=True)
class Screen:
    """The outcome for one problem.

    Attributes:
        kernel: its name.
        problem: what is multiplied.
        device: the GPU whose figures were used.
        candidates: ranked first, then what was not compiled in time, then what cannot run.
    """

    kernel: str
    problem: Problem
    device: Device
    candidates: tuple[Candidate, ...]


def compile_all(
    kernel: str,
    problem: Problem,
    target: Target,
    configs: Iterable[Config],
    *,
    jobs: int,
    timeout_s: float,
    cache: Path | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Config, Compiled]:
    """Compile candidates in ``jobs`` processes.

    Candidates that differ only in group_m, which reorders programs, share one compilation.

    Args:
        kernel: by name.
        problem: decides alignment and data types.
        target: compiled for.
        configs: the candidates.
        jobs: processes.
        timeout_s: for one candidate by the clock; a compiler that takes longer is killed.
        cache: directory of earlier results, or null.
        progress: called with compilations done and in all.
    """
    wanted = list(configs)
    tasks = list(dict.fromkeys(replace(config, group_m=1) for config in wanted))
    waiting: queue.SimpleQueue[Config] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    found: dict[Config, Compiled] = {}

    def work(worker: Worker) -> None:
        while True:
            try:
                config = waiting.get_nowait()
            except queue.Empty:
                return
            found[config] = _ask(worker, kernel, problem, config, target, timeout_s)
            progress(len(found), len(tasks))

    count = max(1, min(jobs, len(tasks)))
    with ExitStack() as stack:
        # What Triton itself would keep goes to a directory that is removed; the facts are kept in the cache.
        scratch = [stack.enter_context(TemporaryDirectory()) for _ in range(count)]
        workers = [stack.enter_context(_compiler(cache, folder)) for folder in scratch]
        threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # interrupted: nobody finds anything left to do, and what is under way is killed
            with suppress(queue.Empty):
                while True:
                    waiting.get_nowait()
            for worker in workers:
                worker.kill()
            for thread in threads:
                thread.join()
            raise
    return {config: found[replace(config, group_m=1)] for config in wanted}


def _ask(worker: Worker, kernel: str, problem: Problem, config: Config, target: Target, timeout_s: float) -> Compiled:
    question = {
        "kernel": kernel,
        "problem": problem.to_dict(),
        "config": config.to_dict(),
        "target": target.name,
    }
    try:
        return CompileFacts.from_dict(worker.ask(question, timeout_s)["facts"])
    except LateWorkerError:
        return NotCompiled(f"not compiled within {timeout_s:g} s", late=True)
    except WorkerError as failure:
        return NotCompiled(str(failure))


def _compiler(cache: Path | None, scratch: str) -> Worker:
    environment = {"TRITON_CACHE_DIR": scratch, "TRITON_INTERPRET": "0"}
    return Worker("traceanalyzer.commands.tune.compile.compile_worker", [str(cache or "")], environment)


def rank_candidates(spec: KernelSpec, problem: Problem, device: Device, compiled: Mapping[Config, Compiled]) -> Screen:
    """Rank compiled candidates; those that failed, do not fit or took too long come last, with the reason."""
    reasons = {config: unfit(facts, device.target) for config, facts in compiled.items()}
    fitting = {
        config: facts for config, facts in compiled.items() if isinstance(facts, CompileFacts) and not reasons[config]
    }
    scores = {
        config: score(problem, config, facts, spec.traffic(problem, config), device)
        for config, facts in fitting.items()
    }
    least = min((found.work for found in scores.values()), default=0.0)
    ranked = [
        Candidate(
            config, place, True, fitting[config], scores[config], scores[config].work / least if least else None, None
        )
        for place, config in enumerate(ordered(scores), 1)
    ]
    late, cannot = [], []
    for config, facts in compiled.items():
        if config in scores:
            continue
        if isinstance(facts, NotCompiled) and facts.late:
            late.append(Candidate(config, None, None, None, None, None, reasons[config]))
        else:
            known = facts if isinstance(facts, CompileFacts) else None
            cannot.append(Candidate(config, None, False, known, None, None, reasons[config]))
    return Screen(spec.name, problem, device, (*ranked, *late, *cannot))


def unfit(compiled: Compiled, target: Target) -> str | None:
    """Return why a candidate has no rank on the target, or null."""
    if isinstance(compiled, NotCompiled):
        return compiled.reason
    if compiled.shared_bytes > target.shared_limit:
        return f"needs {compiled.shared_bytes:,} bytes of shared memory; {target.name} has {target.shared_limit:,}"
    return None


def screen(spec: KernelSpec, problem: Problem, device: Device, configs: Sequence[Config], **options: Any) -> Screen:
    """Compile and rank; ``options`` are those of ``compile_all``."""
    compiled = compile_all(spec.name, problem, device.target, configs, **options)
    return rank_candidates(spec, problem, device, compiled)
