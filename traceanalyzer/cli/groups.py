"""Groups whose commands are found by the first line of their modules, and imported only when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from traceanalyzer.cli.common import QUIET
from traceanalyzer.cli.guards import guarded
from traceanalyzer.discovery import Declared, declared

Maker = Callable[[Declared], click.Command]


def imported(one: Declared) -> click.Command:
    """Return the command that a module holds."""
    command: click.Command = one.load()
    return command


class CommandGroup(click.Group):
    """A group that offers what the modules of some packages declare, beside what is added to it.

    Args:
        words: its own name on the command line, empty for the first level.
        places: package -> how a command is made of one of its modules. A name that two packages declare belongs to the
            first.
    """

    def __init__(self, *arguments: Any, words: str = "", places: Mapping[str, Maker], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.words = words
        self.places = places

    def found(self) -> dict[str, tuple[Declared, Maker]]:
        """Return every declared command with the function that makes it."""
        commands: dict[str, tuple[Declared, Maker]] = {}
        for package, maker in self.places.items():
            for name, one in declared(package, self.words).items():
                commands.setdefault(name, (one, maker))
        return commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command without importing one."""
        return sorted({*self.commands, *self.found()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        command = self.commands.get(cmd_name)
        if command is None and cmd_name in (found := self.found()):
            one, maker = found[cmd_name]
            command = maker(one)
        return None if command is None else guarded(with_quiet(command))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the first lines of their modules."""
        lines = {name: command.get_short_help_str(100) for name, command in self.commands.items()}
        lines |= {name: one.summary for name, (one, _) in self.found().items() if name not in lines}
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
