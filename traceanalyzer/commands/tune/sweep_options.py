"""What the commands that read a sweep share: picking points of it, and making a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceanalyzer.cli.common import FiniteRange

if TYPE_CHECKING:
    from traceanalyzer.commands.tune.formats.sweep import Sweep
    from traceanalyzer.commands.tune.policy.compute import Policy
    from traceanalyzer.problems import TraceWarning

F = TypeVar("F", bound=Callable[..., Any])

where_option = click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only points with this kernel, device, n, routing, ...; repeatable.",
)

top_k_option = click.option(
    "--top-k", type=click.IntRange(min=1), help="Experts per token: m = concurrency x top-k, where the file says no m."
)


def policy_options(default: float) -> Callable[[F], F]:
    """Give a command --top-k, --max-regret and --where."""

    def decorate(command: F) -> F:
        regret = click.option(
            "--max-regret", type=FiniteRange(min=0), default=default, show_default=True,
            help="Share by which a rule may be slower than the fastest configuration at each m.",
        )  # fmt: skip
        return top_k_option(regret(where_option(command)))

    return decorate


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


def whole_pairs(texts: Sequence[str]) -> dict[str, int]:
    """Read ``KEY=NUMBER`` words.

    Raises:
        click.UsageError: one is not.
    """
    try:
        return {key: int(value) for key, value in pairs(texts).items()}
    except ValueError:
        raise click.UsageError(f"a value of {', '.join(texts)} is not a whole number") from None


def read_points(path: Path, top_k: int | None, where: Sequence[str]) -> Sweep:
    """Read a sweep of any known kind, and keep the points asked for.

    Raises:
        TraceError: it cannot be read, or has no such point.
    """
    from traceanalyzer.commands.tune.formats import read_sweep
    from traceanalyzer.commands.tune.policy.compute import select

    wanted = pairs(where)
    sweep = read_sweep(path, top_k)
    return select(sweep, wanted) if wanted else sweep


def chosen_policy(
    path: Path, top_k: int | None, max_regret: float, where: Sequence[str]
) -> tuple[Policy, Sequence[TraceWarning]]:
    """Return the policy of a sweep, or the one that a file of ``tune policy --json`` holds, and what to warn of.

    Raises:
        TraceError: the file is neither, or no rule can be made of it.
    """
    from traceanalyzer.commands.tune.export.constraint_keys import check_values
    from traceanalyzer.commands.tune.policy.compute import make_policy
    from traceanalyzer.commands.tune.policy.policy_file import read_policy

    ready = read_policy(path)
    if ready is not None:
        check_values(ready, str(path))
        return ready, ready.warnings
    sweep = read_points(path, top_k, where)
    made = make_policy(sweep, max_regret)
    check_values(made, str(path))
    return made, (*sweep.warnings, *made.warnings)


def without_keys(policy: Policy, keys: Sequence[str]) -> Policy:
    """Return the policy with some parameters left to the kernel.

    Raises:
        click.UsageError: a rule would be empty.
    """
    from dataclasses import replace

    rules = tuple(replace(rule, config=rule.config.without(keys)) for rule in policy.rules)
    if not all(rule.config for rule in rules):
        raise click.UsageError("--leave-out leaves a rule nothing to set")
    return replace(policy, rules=rules)
