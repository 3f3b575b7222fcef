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

import msgspec

from traceanalyzer.commands.tune.compile.candidate_order import ordered, score
from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.commands.tune.screen.result import TuneScreenCandidate
from traceanalyzer.declare import part_of
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
class Compiling:
    """How to compile candidates.

    Attributes:
        jobs: processes.
        timeout_s: for one candidate by the clock; a compiler that takes longer is killed.
        cache: directory of earlier results, if any.
        progress: called with compilations done and in all.
    """

    jobs: int
    timeout_s: float
    cache: Path | None
    progress: Callable[[int, int], None] = lambda done, total: None


def compile_all(
    kernel: str, problem: Problem, target: Target, configs: Iterable[Config], how: Compiling
) -> dict[Config, Compiled]:
    """Compile candidates in several processes.

    Candidates that differ only in group_m, which reorders programs, share one compilation.
    """
    wanted = list(configs)
    tasks = list(dict.fromkeys(replace(config, group_m=1) for config in wanted))
    waiting: queue.SimpleQueue[Config] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    compiled: dict[Config, Compiled] = {}

    def work(worker: Worker) -> None:
        while True:
            try:
                config = waiting.get_nowait()
            except queue.Empty:
                return
            compiled[config] = _ask(worker, kernel, problem, config, target, how.timeout_s)
            how.progress(len(compiled), len(tasks))

    count = max(1, min(how.jobs, len(tasks)))
    with ExitStack() as stack:
        # What Triton itself would keep goes to a directory that is removed; the facts are kept in the cache.
        scratch = [stack.enter_context(TemporaryDirectory()) for _ in range(count)]
        _work_through(waiting, work, [stack.enter_context(_compiler(how.cache, folder)) for folder in scratch])
    return {config: compiled[replace(config, group_m=1)] for config in wanted}


def _work_through(
    waiting: queue.SimpleQueue[Config], work: Callable[[Worker], None], workers: Sequence[Worker]
) -> None:
    """Let every worker work until nothing waits; on an interrupt, nothing waits and nothing goes on any more."""
    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        with suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for worker in workers:
            worker.kill()
        for thread in threads:
            thread.join()
        raise


def _ask(worker: Worker, kernel: str, problem: Problem, config: Config, target: Target, timeout_s: float) -> Compiled:
    question = {"kernel": kernel, "problem": problem, "config": config, "target": target.name}
    try:
        return msgspec.convert(worker.ask(question, timeout_s)["facts"], CompileFacts)
    except LateWorkerError:
        return NotCompiled(f"not compiled within {timeout_s:g} s", late=True)
    except WorkerError as failure:
        return NotCompiled(str(failure))


def _compiler(cache: Path | None, scratch: str) -> Worker:
    environment = {"TRITON_CACHE_DIR": scratch, "TRITON_INTERPRET": "0"}
    return Worker("traceanalyzer.commands.tune.compile.compilation", [str(cache or "")], environment)


def rank_candidates(
    spec: KernelSpec, problem: Problem, device: Device, compiled: Mapping[Config, Compiled]
) -> list[TuneScreenCandidate]:
    """Rank compiled candidates, then those not compiled in time, then those that cannot run, with the reason."""
    reasons = {config: unfit(facts, device.target) for config, facts in compiled.items()}
    fitting = {
        config: facts for config, facts in compiled.items() if isinstance(facts, CompileFacts) and not reasons[config]
    }
    scores = {
        config: score(problem, config, facts, spec.traffic(problem, config), device)
        for config, facts in fitting.items()
    }
    least = min((one.work for one in scores.values()), default=0.0)
    ranked = [
        part_of(
            TuneScreenCandidate,
            scores[config],
            rank=place,
            fits=True,
            work_ratio=scores[config].work / least if least else None,
            relative_cost=scores[config].cost,
            reason=None,
            **_facts(config, fitting[config]),
        )
        for place, config in enumerate(ordered(scores), 1)
    ]
    unranked = [
        TuneScreenCandidate(
            fits=None if isinstance(facts, NotCompiled) and facts.late else False,
            reason=reasons[config],
            **_facts(config, facts),
        )
        for config, facts in compiled.items()
        if config not in scores
    ]
    return [*ranked, *sorted(unranked, key=lambda one: one.fits is not None)]


def _facts(config: Config, compiled: Compiled) -> dict[str, Any]:
    """What a document says of a candidate that is compiled, or failed to be."""
    facts = compiled if isinstance(compiled, CompileFacts) else None
    return {
        "config": config.to_dict(),
        "registers": facts.assembly.registers if facts else None,
        "spills": facts.assembly.spills if facts else None,
        "shared_bytes": facts.shared_bytes if facts else None,
    }


def unfit(compiled: Compiled, target: Target) -> str | None:
    """Return why a candidate has no rank on the target, if it has none."""
    if isinstance(compiled, NotCompiled):
        return compiled.reason
    if compiled.shared_bytes > target.shared_limit:
        return f"needs {compiled.shared_bytes:,} bytes of shared memory; {target.name} has {target.shared_limit:,}"
    return None
