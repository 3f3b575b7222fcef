"""The end-to-end side of ``traceanalyzer tune verify``: two traces, two serving results, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from traceanalyzer.cli.common import emit_json, open_one, show_warnings, warnings_of
from traceanalyzer.words import PHASES

F = TypeVar("F", bound=Callable[..., Any])


def outcome_options(command: F) -> F:
    """Give a command the options of serving results and of traces."""
    for option in (
        click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of ingested traces."),
        click.option("--rank", type=int, help="The rank to compare, if a trace has several."),
        click.option("--phase", type=click.Choice(PHASES), help="Of traces, only complete steps of this phase."),
        click.option("--after-results", help="Serving results with the new tile."),
        click.option("--before-results", help="Serving results with the tile so far: file, folder or pattern."),
    ):
        command = option(command)
    return command


def check_sides(
    kernel: str | None, shape: str | None, sides: tuple[str | None, str | None], results: tuple[str | None, str | None]
) -> bool:
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
    from traceanalyzer.commands.tune.spec_text import parse_config

    try:
        parse_config(text)
    except ValueError:
        return False
    return True


def verify_outcome(
    sides: tuple[str | None, str | None],
    results: tuple[str | None, str | None],
    phase: str | None,
    rank: int | None,
    *,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Compare two traces, two serving results or both, and show what changed."""
    from traceanalyzer.commands.tune.verify import outcome_view as view
    from traceanalyzer.commands.tune.verify.outcome import outcome
    from traceanalyzer.serving import compare, read
    from traceanalyzer.show.terminal import console

    traces = serving = None
    if sides[0] is not None and sides[1] is not None:
        before, after = (open_one([side], rank=rank, no_cache=no_cache) for side in (sides[0], sides[1]))
        traces = outcome(before, after, phase)
        show_warnings([*warnings_of(before), *warnings_of(after), *traces.warnings])
    if results[0] is not None and results[1] is not None:
        read_sides = [read(side) for side in (results[0], results[1])]
        serving = compare(read_sides[0].results, read_sides[1].results)
        show_warnings([*read_sides[0].warnings, *read_sides[1].warnings, *serving.warnings])
    if as_json:
        emit_json(view.document(traces, serving))
        return
    screen = console()
    screen.print(view.render(traces, serving, screen.width))
