"""``traceanalyzer tune screen``: rank candidates without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from traceanalyzer.cli.common import json_option, limit_option
from traceanalyzer.commands.tune.options import answer, candidate_options, problem_options, usage_errors
from traceanalyzer.commands.tune.screen.screening import Screening
from traceanalyzer.commands.tune.spec_text import candidates_of, problems_of
from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.target import find_target


@click.command()
@problem_options(tuple(HOME))
@candidate_options
@click.option("--m", type=click.IntRange(min=1), help="Rows; in a mixture of experts tokens x top_k.")
@click.option("--target", "target_name", help="Architecture, such as sm_90, gfx942, gfx1151.")
@limit_option(20)
@json_option
def screen(
    kernel: str, shape: str, dtype: str | None, axis_texts: Sequence[str], config_texts: Sequence[str], most: int,
    no_cache: bool, jobs: int, timeout_s: float, gpu: str | None, gpu_file: Path | None, m: int | None,
    target_name: str | None, limit: int, as_json: bool,
) -> None:  # fmt: skip
    """Rank candidates without a GPU.

    Compiles them for the target, drops those that cannot run, and ranks the rest by spills, repeated work, bytes in
    flight and waves. A rank is not a measurement: measure at least the best three.
    """
    from traceanalyzer.commands.tune.screen import view

    screening = Screening(most, jobs, timeout_s, no_cache, gpu, gpu_file)
    with usage_errors():
        spec = find_kernel(kernel)
        problem = problems_of(kernel, shape, dtype, None if m is None else (m,))[0]
        device = screening.device(find_target(target_name) if target_name else None)
        pool = candidates_of(spec.space, problem, device.target, axis_texts, config_texts)
    ranking = screening.screen(spec, problem, device, pool)
    answer(ranking, as_json, lambda width: view.render(ranking, limit, width))
