"""Compile every candidate for a target, drop what cannot run, rank the rest. No GPU is needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target
from traceanalyzer.tune.compilation import CompileFacts
from traceanalyzer.tune.process import Worker, WorkerError
from traceanalyzer.tune.rank import Score, ordered, score

if TYPE_CHECKING:
    from traceanalyzer.kernels.launch import KernelSpec
    from traceanalyzer.tune.device import Device

Compiled = CompileFacts | str
"""What compiling gave: facts, or why it failed."""


@dataclass(frozen=True)
class Candidate:
    """One screened configuration.

    Attributes:
        config: the meta-parameters.
        rank: 1 is the most promising; null when it cannot run.
        facts: what the compiler made of it; null when it failed.
        score: what the rank rests on; null when it cannot run.
        work_ratio: its vector work over the least of all candidates; null when it cannot run.
        reason: why it cannot run, or null.
    """

    config: Config
    rank: int | None
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
        candidates: ranked first, then what cannot run.
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
        timeout_s: for one candidate; a compiler that takes longer is killed.
        cache: directory of earlier results, or null.
        progress: called with compilations done and in all.
    """
    wanted = list(configs)
    tasks = list(dict.fromkeys(replace(config, group_m=1) for config in wanted))
    waiting: queue.SimpleQueue[Config] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    found: dict[Config, Compiled] = {}

    def work() -> None:
        # What Triton itself would keep goes to a directory that is removed; the facts are kept in the cache.
        with TemporaryDirectory() as scratch, _compiler(cache, scratch) as worker:
            while True:
                try:
                    config = waiting.get_nowait()
                except queue.Empty:
                    return
                question = {
                    "kernel": kernel,
                    "problem": problem.to_dict(),
                    "config": config.to_dict(),
                    "target": target.name,
                }
                try:
                    found[config] = CompileFacts.from_dict(worker.ask(question, timeout_s)["facts"])
                except WorkerError as failure:
                    found[config] = str(failure)
                progress(len(found), len(tasks))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(jobs, len(tasks))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {config: found[replace(config, group_m=1)] for config in wanted}


def _compiler(cache: Path | None, scratch: str) -> Worker:
    environment = {"TRITON_CACHE_DIR": scratch, "TRITON_INTERPRET": "0"}
    return Worker("traceanalyzer.tune.compile_worker", [str(cache or "")], environment)


def rank_candidates(spec: KernelSpec, problem: Problem, device: Device, compiled: Mapping[Config, Compiled]) -> Screen:
    """Rank compiled candidates; those that failed or do not fit come last, with the reason."""
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
        Candidate(config, place, fitting[config], scores[config], scores[config].work / least if least else None, None)
        for place, config in enumerate(ordered(scores), 1)
    ]
    rest = [
        Candidate(config, None, facts if isinstance(facts, CompileFacts) else None, None, None, reasons[config])
        for config, facts in compiled.items()
        if config not in scores
    ]
    return Screen(spec.name, problem, device, (*ranked, *rest))


def unfit(compiled: Compiled, target: Target) -> str | None:
    """Return why a compiled candidate cannot run on the target, or null."""
    if isinstance(compiled, str):
        return compiled
    if compiled.shared_bytes > target.shared_limit:
        return f"needs {compiled.shared_bytes:,} bytes of shared memory; {target.name} has {target.shared_limit:,}"
    return None


def screen(spec: KernelSpec, problem: Problem, device: Device, configs: Sequence[Config], **options: Any) -> Screen:
    """Compile and rank; ``options`` are those of ``compile_all``."""
    compiled = compile_all(spec.name, problem, device.target, configs, **options)
    return rank_candidates(spec, problem, device, compiled)
