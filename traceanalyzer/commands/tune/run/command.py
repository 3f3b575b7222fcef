"""``traceanalyzer tune run``: measure candidates on the local GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from traceanalyzer.cli.common import FiniteRange, show_warnings, tell
from traceanalyzer.commands.tune.measure.backends import BACKENDS
from traceanalyzer.commands.tune.measure.bench import MeasuringBench, open_bench, start_worker
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.options import (
    answer,
    candidate_options,
    measure_options,
    problem_options,
    progress,
    usage_errors,
)
from traceanalyzer.commands.tune.run.compute import Job, JobOutcome, Settings, measure
from traceanalyzer.commands.tune.screen.screening import Screening, tell_untried
from traceanalyzer.commands.tune.spec_text import (
    KERNELS,
    candidates_of,
    problems_to_measure,
    routing_draws,
    space_of,
)
from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.space import Pool
from traceanalyzer.kernels.target import INTERPRETER, Target, find_target

TINY_CANDIDATES = 4
"""Candidates that the interpreter runs: enough to try the machinery in seconds. Chosen, not fitted."""


@click.command()
@problem_options(KERNELS)
@candidate_options
@measure_options
@click.option("--top", type=click.IntRange(min=1), default=16, show_default=True,
              help="Measure this many, the best of the screen.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="At most this many rounds.")
@click.option("--margin", type=FiniteRange(min=0), default=0.02, show_default=True,
              help="Drop candidates that are slower than the best by more than this share.")  # fmt: skip
def run(
    kernel: str, shape: str, dtype: str | None, axis_texts: Sequence[str], config_texts: Sequence[str], most: int,
    no_cache: bool, jobs: int, timeout_s: float, gpu: str | None, gpu_file: Path | None, backend: str, device: str,
    m_text: str | None, concurrency: str | None, routings: Sequence[str], samples: int, budget_s: float | None,
    output: Path | None, seed: int, as_json: bool, top: int, rounds: int, margin: float,
) -> None:  # fmt: skip
    """Measure candidates on the local GPU.

    Every candidate is checked against a reference, then timed in rounds with all others; those clearly slower
    drop out. Without --config, candidates are screened first and the best --top are measured.
    """
    with usage_errors():
        space = space_of(kernel)
        problems = problems_to_measure(kernel, shape, dtype, device, m_text, concurrency)
        draws = routing_draws(problems, routings)
        candidates_of(space, problems[0], INTERPRETER, axis_texts, config_texts)  # refuse bad ones before a start
    settings = Settings(rounds, samples, margin, budget_s, timeout_s, seed)
    screening = Screening(most, jobs, timeout_s, no_cache, gpu, gpu_file)
    with start_worker(BACKENDS[backend], device) as worker:
        bench = open_bench(kernel, backend, worker)
        with usage_errors():
            target = _target_of(bench)
            pools = {problem: candidates_of(space, problem, target, axis_texts, config_texts) for problem in problems}
            tell_untried(pools.values())
            chosen = {
                problem: pool.configs if config_texts else _best(bench, problem, target, pool, top, screening)
                for problem, pool in pools.items()
            }
        todo = [Job(problem, draw, chosen[problem]) for problem in problems for draw in draws]
        journal = Journal(output)
        with progress("measuring") as advance:
            outcomes = measure(bench, todo, settings, journal, progress=advance)
    _show(bench, outcomes, journal, output, as_json)


def _show(
    bench: MeasuringBench, outcomes: Sequence[JobOutcome], journal: Journal, output: Path | None, as_json: bool
) -> None:
    from traceanalyzer.commands.tune.run import view

    show_warnings(journal.warnings)
    document = view.document(bench, outcomes, output)
    answer(document, as_json, lambda width: view.render(document, width))
    if not as_json:
        click.echo(view.seed_log(bench, outcomes))


def _target_of(bench: MeasuringBench) -> Target:
    name = bench.device["target"]
    return INTERPRETER if name is None else find_target(name)


def _best(
    bench: MeasuringBench, problem: Problem, target: Target, pool: Pool, top: int, screening: Screening
) -> tuple[Config, ...]:
    """Screen for the local GPU and return the best; what cannot be screened is chosen by its tile alone."""
    configs = pool.configs
    if target.vendor == "none":
        return configs[:: max(1, len(configs) // TINY_CANDIDATES)][:TINY_CANDIDATES]
    if len(configs) <= top:
        return configs
    device = screening.device(target, bench.device["name"])
    if bench.kernel not in HOME:
        from traceanalyzer.commands.tune.compile.candidate_order import preselect
        from traceanalyzer.commands.tune.measure.backends.fused_moe import traffic

        return preselect(problem, configs, traffic, device, screening.most or len(configs), pool.named)
    ranking = screening.screen(find_kernel(bench.kernel), problem, device, pool)
    late = sum(candidate.fits is None for candidate in ranking.candidates)
    if late:
        tell(f"m={problem.m}: {late} candidates were not compiled in time and are not measured (--timeout, --jobs)")
    return tuple(candidate.launch for candidate in ranking.candidates if candidate.rank is not None)[:top]
