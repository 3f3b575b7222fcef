"""``traceanalyzer tune verify``: measure before and after in turns, or compare results of a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from traceanalyzer.cli.common import FiniteRange, emit_json, reads_pipes, show_warnings
from traceanalyzer.commands.tune.measure.backends import BACKENDS
from traceanalyzer.commands.tune.options import (
    KERNELS,
    measure_options,
    problem_options,
    problems_to_measure,
    routing_draws,
    usage_errors,
)
from traceanalyzer.commands.tune.verify.end_to_end import check_sides, outcome_options, verify_outcome


@click.command()
@problem_options(KERNELS, required=False)
@measure_options
@click.option("--before", "before_text",
              help="The tile so far, such as 32x256x128x1,num_warps=8; without --kernel a trace.")  # fmt: skip
@click.option("--after", "after_text", help="The new tile; without --kernel a trace of the server that runs it.")
@outcome_options
@click.option("--rounds", type=click.IntRange(min=1), default=30, show_default=True, help="Rounds to measure.")
@click.option("--timeout", "timeout_s", type=FiniteRange(min=1), default=120.0, show_default=True,
              help="Seconds for one candidate.")  # fmt: skip
@reads_pipes
def verify(
    kernel: str | None, shape: str | None, dtype: str | None, backend: str, device: str, m_text: str | None,
    concurrency: str | None, routings: Sequence[str], samples: int, budget_s: float | None, output: Path | None,
    seed: int, as_json: bool, before_text: str | None, after_text: str | None, before_results: str | None,
    after_results: str | None, phase: str | None, rank: int | None, no_cache: bool, rounds: int, timeout_s: float,
) -> None:  # fmt: skip
    """Prove a change: on the kernel, on the step, and on the server.

    With --kernel and --shape, measure two tiles in turns on the local GPU. With two traces as --before and --after,
    say what the step and the kernels with another tile gained, and whether the change is the tile's. With
    --before-results and --after-results, compare serving benchmarks.
    """
    from traceanalyzer.commands.tune.measure.bench import open_bench, start_worker
    from traceanalyzer.commands.tune.measure.journal import Journal
    from traceanalyzer.commands.tune.progress_bar import progress
    from traceanalyzer.commands.tune.run.compute import Job, Settings, measure
    from traceanalyzer.commands.tune.spec_text import parse_config
    from traceanalyzer.commands.tune.verify import view
    from traceanalyzer.commands.tune.verify.compute import compare
    from traceanalyzer.show.terminal import console

    results = (before_results, after_results)
    on_kernel = check_sides(kernel, shape, (before_text, after_text), results)
    if not on_kernel or kernel is None or shape is None or before_text is None or after_text is None:
        verify_outcome((before_text, after_text), results, phase, rank, no_cache=no_cache, as_json=as_json)
        return
    with usage_errors():
        problems = problems_to_measure(kernel, shape, dtype, device, m_text, concurrency)
        draws = routing_draws(problems, routings)
        before, after = parse_config(before_text), parse_config(after_text)
    if before == after:
        raise click.UsageError("--before and --after are the same configuration")
    settings = Settings(rounds, samples, None, budget_s, timeout_s, seed)
    todo = [Job(problem, draw, (before, after)) for problem in problems for draw in draws]
    journal = Journal(output)
    with start_worker(BACKENDS[backend], device) as worker, progress("measuring") as advance:
        bench = open_bench(kernel, backend, worker)
        outcomes = measure(bench, todo, settings, journal, progress=advance)
    show_warnings(journal.warnings)
    compared = [(outcome.job, compare(outcome, before, after)) for outcome in outcomes]
    if as_json:
        emit_json(view.document(bench, compared))
        return
    out = console()
    out.print(view.render(bench, compared, out.width))
