"""``traceanalyzer tune plan``: pick the kernel of a trace that is worth tuning, with its shape."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from traceanalyzer.cli.common import (
    json_option,
    no_cache_option,
    open_one,
    paths_argument,
    rank_option,
    require_phase,
    show_warnings,
    warnings_of,
)
from traceanalyzer.cli.request_options import Given, request_options
from traceanalyzer.commands.tune.config_text import command_lines
from traceanalyzer.commands.tune.options import answer


@click.command()
@paths_argument
@request_options
@click.option(
    "--triton-cache",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The TRITON_CACHE_DIR of the server: tile, warps and spills of its kernels.",
)
@rank_option
@json_option
@no_cache_option
def plan(
    paths: tuple[str, ...], given: Given, triton_cache: Path | None, rank: int | None, as_json: bool, no_cache: bool
) -> None:
    """Pick the kernel of a trace whose tile is worth tuning.

    The retunable kernel with most time above its roof, its shape and rows, the most that a better tile can save, and
    the commands to run next; and why larger kernels cannot be tuned or are not worth it.
    """
    from traceanalyzer.commands.tune.plan import view
    from traceanalyzer.commands.tune.plan.compute import plan as make_plan
    from traceanalyzer.commands.tune.plan.next_commands import next_commands
    from traceanalyzer.roofline import RooflineError

    request = given.request(no_cache=no_cache)
    try:
        trace = open_one(paths, rank=rank, no_cache=no_cache)
        require_phase(trace, given.phase)
        planned = make_plan(trace, request, triton_cache)
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    show_warnings(warnings_of(trace))
    commands = next_commands(planned, paths, _stated_options())
    answer(view.document(planned, commands), as_json, lambda width: view.render(planned, width))
    if not as_json:
        click.echo(command_lines(commands))


def _stated_options() -> dict[str, str]:
    """The options with a value that the user wrote, by name."""
    context = click.get_current_context()
    return {
        option.opts[0]: str(context.params[option.name])
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name
        and not option.is_flag
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }
