"""What the tune commands share: options, and reading problems and candidates from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceanalyzer.cli.common import FiniteRange, json_option
from traceanalyzer.cli.request_options import gpu_file_option
from traceanalyzer.commands.tune.measure.backends import BACKENDS
from traceanalyzer.kernels import HOME

if TYPE_CHECKING:
    from traceanalyzer.kernels.problem import Problem
    from traceanalyzer.kernels.space import Pool, SearchSpace
    from traceanalyzer.kernels.target import Target

F = TypeVar("F", bound=Callable[..., Any])

FUSED_MOE = "fused_moe"
KERNELS = (*HOME, FUSED_MOE)


def problem_options(kernels: Sequence[str], *, required: bool = True) -> Callable[[F], F]:
    """Give a command the options that say what is multiplied."""
    return lambda command: _with_options(command, _problem_options(kernels, required))


def _with_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in options:
        command = option(command)
    return command


def _problem_options(kernels: Sequence[str], required: bool) -> Sequence[Callable[[Any], Any]]:
    return (
        click.option(
            "--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8")), help="Data type of the activations."
        ),
        click.option(
            "--shape",
            required=required,
            help="A known shape's name, or n=5760,k=2880,experts=32,top_k=4. N and K of the product on one rank.",
        ),
        click.option("--kernel", type=click.Choice(tuple(kernels)), required=required, help="What to tune."),
    )


def candidate_options(command: F) -> F:
    """Give a command the options that say which candidates there are."""
    for option in (
        gpu_file_option,
        click.option("--gpu", help="GPU whose figures the screen uses, such as H100 or MI300X."),
        click.option("--timeout", "timeout_s", type=FiniteRange(min=1), default=120.0, show_default=True,
                     help="Seconds for one candidate."),
        click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Compiling processes."),
        click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of compiled candidates."),
        click.option("--compile", "most", type=click.IntRange(min=0), default=96, show_default=True,
                     help="Candidates to compile, the most promising by tile alone; 0 compiles all."),
        click.option("--config", "config_texts", multiple=True,
                     help="One candidate, such as 16x128x128x1,num_warps=8; repeat for more. Replaces the space."),
        click.option("--axis", "axis_texts", multiple=True,
                     help="Values of one parameter, such as num_warps=2,8; replaces the kernel's own; repeatable."),
    ):  # fmt: skip
        command = option(command)
    return command


def measure_options(command: F) -> F:
    """Give a command the options of measuring."""
    for option in (
        json_option,
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of data, routing and order."),
        click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
                     help="Sweep file: results are added as they come, and an interrupted run resumes from it."),
        click.option("--budget", "budget_s", type=FiniteRange(min=1), help="Seconds for measuring."),
        click.option("--samples", type=click.IntRange(min=1), default=10, show_default=True,
                     help="Samples per candidate and round."),
        click.option("--routing", "routings", multiple=True, default=("uniform",), show_default=True,
                     help="Rows on experts: uniform, skewed, or rows per expert (3,0,5,...); repeatable."),
        click.option("--concurrency", help="Instead of --m: tokens in the batch; rows follow from top_k."),
        click.option("--m", "m_text", help="Rows, such as 4,16 or 4-32; in a mixture of experts tokens x top_k."),
        click.option("--device", type=click.Choice(("gpu", "interpret")), default="gpu", show_default=True,
                     help="interpret runs tiny shapes in Triton's interpreter, which measures nothing."),
        click.option("--backend", type=click.Choice(tuple(BACKENDS)), default="builtin", show_default=True,
                     help="Whose kernel: the built-in one, or that of an installed vLLM."),
    ):  # fmt: skip
        command = option(command)
    return command


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn what the user wrote wrong into a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def space_of(kernel: str) -> SearchSpace:
    """Return a kernel's search space; vLLM's fused_moe has one too, though it is not built in."""
    if kernel == FUSED_MOE:
        from traceanalyzer.commands.tune.measure.backends.fused_moe import SPACE

        return SPACE
    from traceanalyzer.kernels import find_kernel

    return find_kernel(kernel).space


def problems_of(kernel: str, shape: str, dtype: str | None, rows: Sequence[int] | None) -> tuple[Problem, ...]:
    """Return the problem that a shape names, once per number of rows.

    Raises:
        ValueError: there is no such shape, or the kernel cannot do it.
    """
    from traceanalyzer.commands.tune.spec_text import parse_problem

    if kernel == FUSED_MOE:
        problem = parse_problem(shape, space_of(kernel).shapes, dtype)
        if problem.experts is None:
            raise ValueError(f"{FUSED_MOE} needs experts and top_k")
    else:
        from traceanalyzer.kernels import find_kernel

        spec = find_kernel(kernel)
        problem = parse_problem(shape, spec.space.shapes, dtype or spec.dtypes[0])
        if fault := spec.fault(problem):
            raise ValueError(fault)
    return tuple(problem.with_m(m) for m in rows) if rows else (problem,)


def problems_to_measure(
    kernel: str, shape: str, dtype: str | None, device: str, m_text: str | None, concurrency: str | None
) -> tuple[Problem, ...]:
    """Return the problems of a run, one per number of rows; the interpreter gets tiny ones.

    Raises:
        ValueError: the shape or the rows cannot be used.
    """
    from traceanalyzer.commands.tune.measure.tiny import tiny
    from traceanalyzer.commands.tune.spec_text import parse_counts

    if m_text and concurrency:
        raise ValueError("give --m or --concurrency, not both")
    if device == "interpret" and kernel != FUSED_MOE:
        from traceanalyzer.kernels import find_kernel

        dtype = find_kernel(kernel).interpreter_dtype
    rows = parse_counts(m_text) if m_text else None
    if concurrency:
        top_k = problems_of(kernel, shape, dtype, None)[0].top_k or 1
        rows = tuple(tokens * top_k for tokens in parse_counts(concurrency))
    problems = problems_of(kernel, shape, dtype, rows)
    return tuple(dict.fromkeys(map(tiny, problems))) if device == "interpret" else problems


def routing_draws(problems: Sequence[Problem], routings: Sequence[str]) -> tuple[str | None, ...]:
    """Return the routing draws; a dense product has none.

    Raises:
        ValueError: counts do not fit one of the problems.
    """
    from traceanalyzer.kernels.routing import DRAWS, given_counts

    if problems[0].experts is None:
        return (None,)
    for routing in routings:
        if routing not in DRAWS:
            for problem in problems:
                given_counts(routing, problem)
    return tuple(dict.fromkeys(routings))


def candidates_of(
    space: SearchSpace, problem: Problem, target: Target, axis_texts: Sequence[str], config_texts: Sequence[str]
) -> Pool:
    """Return the candidates for a problem: those named, or the space with the axes given.

    Raises:
        ValueError: one cannot be read or cannot be right, or none is left.
    """
    from traceanalyzer.commands.tune.spec_text import parse_axes, parse_config
    from traceanalyzer.kernels.space import Pool

    if config_texts:
        configs = tuple(dict.fromkeys(map(parse_config, config_texts)))
        for config in configs:
            if reason := space.impossible(problem, config, target):
                raise ValueError(f"{config.label}: {reason}")
        return Pool(configs)
    pool = space.pool(problem, target, parse_axes(axis_texts))
    if not pool.configs:
        why = "; ".join(f"{value}: {reason}" for value, reason in pool.untried.items())
        raise ValueError(f"no configuration of the axes fits m={problem.m} n={problem.n} k={problem.k} ({why})")
    return pool
