"""``traceanalyzer tune screen``: rank candidates without a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import click

from traceanalyzer.cli.common import emit_json, json_option
from traceanalyzer.cli.tune_options import (
    candidate_options,
    candidates_of,
    compile_cache,
    problem_options,
    problems_of,
    usage_errors,
)
from traceanalyzer.kernels import HOME


@click.command()
@problem_options(tuple(HOME))
@candidate_options
@click.option("--m", type=click.IntRange(min=1), help="Rows; in a mixture of experts tokens x top_k.")
@click.option("--target", "target_name", help="Architecture, such as sm_90, gfx942, gfx1151.")
@click.option("--gpu", help="GPU whose figures count, such as H100 or MI300X.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows shown; 0 shows all.")
@json_option
def screen(
    kernel: str, shape: str, dtype: str | None, axis_texts: Sequence[str], config_texts: Sequence[str], most: int,
    no_cache: bool, jobs: int, timeout_s: float, m: int | None, target_name: str | None, gpu: str | None,
    limit: int, as_json: bool,
) -> None:  # fmt: skip
    """Rank candidates without a GPU.

    Compiles them for the target, drops those that cannot run, and ranks the rest by spills, repeated work, bytes in
    flight and waves. A rank is no measurement: measure at least the best three.
    """
    from traceanalyzer.kernels import find_kernel
    from traceanalyzer.kernels.target import find_target
    from traceanalyzer.report import tune as report
    from traceanalyzer.report.console import console
    from traceanalyzer.tune.device import device_of
    from traceanalyzer.tune.rank import preselect
    from traceanalyzer.tune.screen import screen as screen_candidates

    with usage_errors():
        spec = find_kernel(kernel)
        problem = problems_of(kernel, shape, dtype, None if m is None else (m,))[0]
        device = device_of(find_target(target_name) if target_name else None, gpu)
        configs = candidates_of(spec.space, problem, device.target, axis_texts, config_texts)
    chosen = preselect(problem, configs, spec.traffic, device, most or len(configs))
    with report.progress("compiling") as advance:
        found = screen_candidates(
            spec, problem, device, chosen, jobs=jobs, timeout_s=timeout_s,
            cache=None if no_cache else compile_cache(), progress=lambda done, total: advance("compiling", done, total),
        )  # fmt: skip
    if as_json:
        emit_json(report.screen_document(found, len(configs) - len(chosen)))
        return
    out = console()
    out.print(report.render_screen(found, len(configs) - len(chosen), limit or len(chosen), out.width))
