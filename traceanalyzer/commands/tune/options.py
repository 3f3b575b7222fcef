"""What the tune commands share: options, showing an answer, and reading a sweep or a policy as asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from traceanalyzer.cli.common import FiniteRange, emit_json, json_option
from traceanalyzer.cli.request_options import gpu_file_option
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.formats.sweep import Sweep
from traceanalyzer.commands.tune.measure.backends import BACKENDS
from traceanalyzer.commands.tune.policy.compute import DEFAULT_MAX_REGRET, Policy, make_policy, select
from traceanalyzer.commands.tune.policy.policy_file import check_values, read_policy
from traceanalyzer.declare import Part
from traceanalyzer.problems import TraceWarning

F = TypeVar("F", bound=Callable[..., Any])


def _all(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Give a command several options at once; its help lists them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def problem_options(kernels: Sequence[str], *, required: bool = True) -> Callable[[F], F]:
    """Give a command the options that say what is multiplied."""
    return _all(
        click.option("--kernel", type=click.Choice(tuple(kernels)), required=required, help="What to tune."),
        click.option("--shape", required=required,
                     help="A known shape's name, or n=5760,k=2880,experts=32,top_k=4. N and K are those of one rank."),
        click.option("--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8")),
                     help="Data type of the activations."),
    )  # fmt: skip


timeout_option = click.option(
    "--timeout", "timeout_s", type=FiniteRange(min=1), default=120.0, show_default=True,
    help="Seconds for one candidate.",
)  # fmt: skip

candidate_options = _all(
    click.option("--axis", "axis_texts", multiple=True,
                 help="Values of one parameter, such as num_warps=2,8; replaces the kernel's own; repeatable."),
    click.option("--config", "config_texts", multiple=True,
                 help="One candidate, such as 16x128x128x1,num_warps=8; repeat for more. Replaces the search space."),
    click.option("--compile", "most", type=click.IntRange(min=0), default=96, show_default=True,
                 help="Candidates to compile, the most promising by tile alone; 0 compiles all."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of compiled candidates."),
    click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Compiling processes."),
    timeout_option,
    click.option("--gpu", help="GPU whose figures the screen uses, such as H100 or MI300X."),
    gpu_file_option,
)  # fmt: skip
"""Which candidates there are, and how they are screened."""

measure_options = _all(
    click.option("--backend", type=click.Choice(tuple(BACKENDS)), default="builtin", show_default=True,
                 help="Whose kernel: the built-in one, or that of an installed vLLM."),
    click.option("--device", type=click.Choice(("gpu", "interpret")), default="gpu", show_default=True,
                 help="interpret runs tiny shapes in Triton's interpreter, which measures nothing."),
    click.option("--m", "m_text", help="Rows, such as 4,16 or 4-32; in a mixture of experts tokens x top_k."),
    click.option("--concurrency", help="Instead of --m: tokens in the batch; rows follow from top_k."),
    click.option("--routing", "routings", multiple=True, default=("uniform",), show_default=True,
                 help="How rows are spread over experts: uniform, skewed, or rows per expert (3,0,5,...); repeatable."),
    click.option("--samples", type=click.IntRange(min=1), default=10, show_default=True,
                 help="Samples per candidate and round."),
    click.option("--budget", "budget_s", type=FiniteRange(min=1), help="Seconds for measuring."),
    click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
                 help="Sweep file: results are added as they come, and an interrupted run resumes from it."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of data, routing and order."),
    json_option,
)  # fmt: skip

sweep_argument = click.argument("sweep", type=click.Path(path_type=Path))

where_option = click.option(
    "--where", multiple=True, metavar="KEY=VALUE",
    help="Only points with this kernel, device, n, routing, ...; repeatable.",
)  # fmt: skip

policy_options = _all(
    click.option("--top-k", type=click.IntRange(min=1),
                 help="Experts per token: m = concurrency x top-k, if the file has no m."),
    click.option("--max-regret", type=FiniteRange(min=0), default=DEFAULT_MAX_REGRET, show_default=True,
                 help="Share by which a rule may be slower than the fastest configuration at each m."),
    where_option,
)  # fmt: skip


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn what the user wrote wrong into a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def progress(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar on stderr, where that is a terminal; yield what moves it: (text, done, total)."""
    if not sys.stderr.isatty():
        yield lambda text, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)


def answer(document: Part, as_json: bool, render: Callable[[int], Any]) -> None:
    """Print the answer of a command: as its JSON document, or as ``render`` shows it at the terminal's width."""
    if as_json:
        emit_json(document)
        return
    from traceanalyzer.show.terminal import console

    screen = console()
    screen.print(render(screen.width))


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Read ``KEY=VALUE`` words.

    Raises:
        click.UsageError: one is not.
    """
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{text!r} is not KEY=VALUE")
        values[key.strip()] = value.strip()
    return values


def read_points(path: Path, top_k: int | None, where: Sequence[str]) -> Sweep:
    """Read a sweep of any known kind, and keep the points asked for.

    Raises:
        TraceError: it cannot be read, or has no such point.
    """
    wanted = pairs(where)
    sweep = read_sweep(path, top_k)
    return select(sweep, wanted) if wanted else sweep


def chosen_policy(
    path: Path, top_k: int | None, max_regret: float, where: Sequence[str]
) -> tuple[Policy, Sequence[TraceWarning]]:
    """Return the policy of a sweep, or the one that a file of ``tune policy --json`` holds, and what to warn of.

    Raises:
        TraceError: the file is neither, no rule can be made of it, or no kernel could follow the rules.
    """
    policy = read_policy(path)
    warnings: tuple[TraceWarning, ...] = ()
    if policy is None:
        sweep = read_points(path, top_k, where)
        policy, warnings = make_policy(sweep, max_regret), sweep.warnings
    check_values(policy, str(path))
    return policy, (*warnings, *policy.warnings)
