"""Groups whose commands are found by the first line of their modules, and imported only when they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from traceanalyzer.cli.common import (
    QUIET,
    limit_option,
    open_one,
    paths_argument,
    rank_option,
    show_warnings,
    warnings_of,
)
from traceanalyzer.cli.forms import Form, form_options, show
from traceanalyzer.cli.guards import guarded
from traceanalyzer.discovery import Declared, declared

Maker = Callable[[Declared], click.Command]


def command_of(one: Declared) -> click.Command:
    """Return the command that a folder holds, or make one for an analysis that has none of its own."""
    if one.is_bare:
        return command_of_analysis(one)
    command: click.Command = one.load()
    return command


def command_of_analysis(analysis: Declared) -> click.Command:
    """Return the command of an analysis; what it computes is imported when it runs."""

    @click.command(analysis.name, help=analysis.description())
    @paths_argument
    @rank_option
    @limit_option(20)
    @form_options
    def run(paths: tuple[str, ...], rank: int | None, limit: int, form: Form, no_cache: bool) -> None:
        from traceanalyzer.show import frame_table

        trace = open_one(paths, rank=rank, no_cache=no_cache)
        frame = analysis.load()(trace)
        show_warnings(warnings_of(trace))
        columns, rows = frame_table.in_us(frame)
        document = {"schema": f"traceanalyzer/{analysis.name}/1", "rows": rows}
        show(form, document, csv=(columns, rows), render=lambda width: frame_table.render(frame, limit, width))

    return run


class CommandGroup(click.Group):
    """A group that offers what a package declares, beside what is added to it.

    Args:
        words: its own name on the command line, empty for the first level.
        package: where its commands are declared.
        maker: how a command is made of one declaration.
    """

    def __init__(
        self, *arguments: Any, package: str, words: str = "", maker: Maker = command_of, **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.words = words
        self.package = package
        self.maker = maker

    def declared(self) -> dict[str, Declared]:
        """Return every declared command."""
        return declared(self.package, self.words)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command without importing one."""
        return sorted({*self.commands, *self.declared()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        command = self.commands.get(cmd_name)
        if command is None and (one := self.declared().get(cmd_name)) is not None:
            command = self.maker(one)
        return None if command is None else guarded(with_quiet(command))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the first lines of their modules."""
        lines = {name: command.get_short_help_str(100) for name, command in self.commands.items()}
        lines |= {name: one.summary for name, one in self.declared().items() if name not in lines}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))


def with_quiet(command: click.Command) -> click.Command:
    """Give a command, and those attached to it, the option --quiet."""
    for one in [command, *getattr(command, "commands", {}).values()]:
        if not any(parameter.name == "quiet" for parameter in one.params):
            one.params.append(
                click.Option(
                    ["-q", "--quiet"],
                    is_flag=True,
                    expose_value=False,
                    callback=_be_quiet,
                    help="Show neither warnings nor progress; errors remain.",
                )
            )
    return command


def _be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[QUIET] = True
