"""``traceanalyzer tune run``: measure candidates on the local GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceanalyzer.cli.common import FiniteRange, emit_json, show_warnings
from traceanalyzer.cli.tune_options import (
    KERNELS,
    candidate_options,
    candidates_of,
    compile_cache,
    measure_options,
    problem_options,
    problems_to_measure,
    routing_draws,
    space_of,
    usage_errors,
)
from traceanalyzer.kernels import HOME
from traceanalyzer.tune.backends import BACKENDS

if TYPE_CHECKING:
    from traceanalyzer.kernels.problem import Config, Problem
    from traceanalyzer.kernels.target import Target
    from traceanalyzer.tune.run import Bench

TINY_CANDIDATES = 4


@click.command()
@problem_options(KERNELS)
@candidate_options
@measure_options
@click.option("--top", type=click.IntRange(min=1), default=16, show_default=True,
              help="Measure this many, the best of the screen.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="Rounds at most.")
@click.option("--margin", type=FiniteRange(min=0), default=0.02, show_default=True,
              help="Drop who is slower than the best by more than this share.")  # fmt: skip
def run(
    kernel: str, shape: str, dtype: str | None, axis_texts: Sequence[str], config_texts: Sequence[str], most: int,
    no_cache: bool, jobs: int, timeout_s: float, backend: str, device: str, m_text: str | None,
    concurrency: str | None, routings: Sequence[str], samples: int, budget_s: float | None, output: Path | None,
    seed: int, as_json: bool, top: int, rounds: int, margin: float,
) -> None:  # fmt: skip
    """Measure candidates on the local GPU.

    Every candidate is checked against a reference, then timed in rounds beside all others; who is clearly slower
    drops out. Without --config, candidates are screened first and the best --top are measured.
    """
    from traceanalyzer.kernels.target import INTERPRETER
    from traceanalyzer.tune.run import Job, Settings, open_bench, start_worker

    with usage_errors():
        space = space_of(kernel)
        problems = problems_to_measure(kernel, shape, dtype, device, m_text, concurrency)
        draws = routing_draws(problems, routings)
        candidates_of(space, problems[0], INTERPRETER, axis_texts, config_texts)  # refuse bad ones before a start
    settings = Settings(rounds, samples, margin, budget_s, timeout_s, seed)
    with start_worker(BACKENDS[backend], device) as worker:
        bench = open_bench(kernel, backend, worker)
        with usage_errors():
            target = _target_of(bench)
            pools = {problem: candidates_of(space, problem, target, axis_texts, config_texts) for problem in problems}
        if not config_texts:
            screening = {
                "most": most,
                "jobs": jobs,
                "timeout_s": timeout_s,
                "cache": None if no_cache else compile_cache(),
            }
            with usage_errors():
                pools = {
                    problem: _best(kernel, problem, target, pools[problem], top, screening) for problem in problems
                }
        todo = [Job(problem, draw, pools[problem]) for problem in problems for draw in draws]
        _measure_and_show(bench, todo, settings, output, as_json)


def _measure_and_show(bench: Bench, todo: Sequence[Any], settings: Any, output: Path | None, as_json: bool) -> None:
    from traceanalyzer.report import tune as report
    from traceanalyzer.report.console import console
    from traceanalyzer.tune.journal import Journal
    from traceanalyzer.tune.run import measure

    journal = Journal(output)
    with report.progress("measuring") as advance:
        outcomes = measure(bench, todo, settings, journal, progress=advance)
    show_warnings(journal.warnings)
    if as_json:
        emit_json(report.run_document(bench, outcomes, output))
        return
    out = console()
    out.print(report.render_run(bench, outcomes, out.width))
    click.echo(report.seed_log(bench, outcomes))


def _target_of(bench: Bench) -> Target:
    from traceanalyzer.kernels.target import INTERPRETER, find_target

    name = bench.where.device["target"]
    return INTERPRETER if name is None else find_target(name)


def _best(
    kernel: str, problem: Problem, target: Target, configs: Sequence[Config], top: int, screening: Mapping[str, Any]
) -> tuple[Config, ...]:
    """Screen for the local GPU and return the best; what cannot be screened is taken as it comes."""
    from traceanalyzer.report import tune as report
    from traceanalyzer.tune.device import device_of
    from traceanalyzer.tune.rank import preselect
    from traceanalyzer.tune.screen import screen as screen_candidates

    if target.vendor == "none":
        return tuple(configs[:: max(1, len(configs) // TINY_CANDIDATES)][:TINY_CANDIDATES])
    if kernel not in HOME or len(configs) <= top:
        return tuple(configs)
    from traceanalyzer.kernels import find_kernel

    spec, device = find_kernel(kernel), device_of(target)
    chosen = preselect(problem, configs, spec.traffic, device, screening["most"] or len(configs))
    options = {name: screening[name] for name in ("jobs", "timeout_s", "cache")}
    with report.progress("compiling") as advance:
        found = screen_candidates(
            spec, problem, device, chosen, progress=lambda done, total: advance("compiling", done, total), **options
        )
    return tuple(candidate.config for candidate in found.candidates if candidate.rank is not None)[:top]
