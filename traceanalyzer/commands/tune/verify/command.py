"""``traceanalyzer tune verify``: measure before and after in turns, or compare results of a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from traceanalyzer.cli.common import open_one, reads_pipes, show_warnings, warnings_of
from traceanalyzer.commands.tune.measure.backends import BACKENDS
from traceanalyzer.commands.tune.measure.bench import open_bench, start_worker
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.options import (
    answer,
    measure_options,
    problem_options,
    progress,
    timeout_option,
    usage_errors,
)
from traceanalyzer.commands.tune.run.compute import Job, Settings, measure
from traceanalyzer.commands.tune.spec_text import KERNELS, parse_config, problems_to_measure, routing_draws
from traceanalyzer.declare import part_of
from traceanalyzer.words import PHASES

Sides = tuple[str | None, str | None]
"""What stands for before and after, as the user wrote it."""


@click.command()
@problem_options(KERNELS, required=False)
@measure_options
@click.option("--before", "before_text",
              help="The tile so far, such as 32x256x128x1,num_warps=8; without --kernel a trace.")  # fmt: skip
@click.option("--after", "after_text", help="The new tile; without --kernel a trace of the server that runs it.")
@click.option("--before-results", help="Serving results with the tile so far: file, folder or pattern.")
@click.option("--after-results", help="Serving results with the new tile.")
@click.option("--phase", type=click.Choice(PHASES), help="Of traces, only complete steps of this phase.")
@click.option("--rank", type=int, help="The rank to compare, if a trace has several.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of ingested traces.")
@click.option("--rounds", type=click.IntRange(min=1), default=30, show_default=True, help="Rounds to measure.")
@timeout_option
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
    results = (before_results, after_results)
    on_kernel = _check_sides(kernel, shape, (before_text, after_text), results)
    if not on_kernel or kernel is None or shape is None or before_text is None or after_text is None:
        _verify_outcome((before_text, after_text), results, phase, rank, no_cache=no_cache, as_json=as_json)
        return
    from traceanalyzer.commands.tune.verify import view
    from traceanalyzer.commands.tune.verify.compute import compare
    from traceanalyzer.commands.tune.verify.result import TuneVerifyDocument

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
    compared = [compare(outcome, before, after) for outcome in outcomes]
    document = part_of(TuneVerifyDocument, bench, problems=compared)
    answer(document, as_json, lambda width: view.render(document, width))


def _check_sides(kernel: str | None, shape: str | None, sides: Sides, results: Sides) -> bool:
    """Return whether a kernel is to be measured; else traces or serving results are compared.

    Raises:
        click.UsageError: what is given is neither.
    """
    for given, name in ((sides, ""), (results, "-results")):
        if (given[0] is None) != (given[1] is None):
            raise click.UsageError(f"give both --before{name} and --after{name}")
    if kernel is not None or shape is not None:
        if kernel is None or shape is None:
            raise click.UsageError(f"Missing option '{'--kernel' if kernel is None else '--shape'}'.")
        if results[0] is not None:
            raise click.UsageError("--before-results and --after-results do not go with --kernel")
        if sides[0] is None:
            raise click.UsageError("Missing option '--before': the tile so far, and '--after': the new one.")
        return True
    if sides[0] is None and results[0] is None:
        raise click.UsageError(
            "give --kernel and --shape with two tiles, two traces, or serving results, as --before.. and --after.."
        )
    for side in sides:
        if side is not None and _is_tile(side):
            raise click.UsageError(f"{side} is a tile: to measure it, give --kernel and --shape")
    return False


def _is_tile(text: str) -> bool:
    try:
        parse_config(text)
    except ValueError:
        return False
    return True


def _verify_outcome(
    sides: Sides, results: Sides, phase: str | None, rank: int | None, *, no_cache: bool, as_json: bool
) -> None:
    """Compare two traces, two serving results or both, and show what changed."""
    from traceanalyzer.commands.tune.verify import view
    from traceanalyzer.commands.tune.verify.outcome import outcome
    from traceanalyzer.serving import compare as compare_results
    from traceanalyzer.serving import read

    traces = serving = None
    if sides[0] is not None and sides[1] is not None:
        before, after = (open_one([side], rank=rank, no_cache=no_cache) for side in (sides[0], sides[1]))
        traces = outcome(before, after, phase)
        show_warnings([*warnings_of(before), *warnings_of(after), *traces.warnings])
    if results[0] is not None and results[1] is not None:
        read_sides = [read(side) for side in (results[0], results[1])]
        serving = compare_results(read_sides[0].results, read_sides[1].results)
        show_warnings([*read_sides[0].warnings, *read_sides[1].warnings, *serving.warnings])
    document = view.outcome_document(traces, serving)
    answer(document, as_json, lambda width: view.render_outcome(traces, serving, width))
