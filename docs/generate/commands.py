"""commands.md: what every command says to --help."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from click.testing import CliRunner

from docs.generate.markdown import join, note
from traceanalyzer.cli.main import cli

WIDTH = 100
"""Columns that help is written in, whatever terminal the page is made in."""

HEAD = """
# Commands

What `traceanalyzer COMMAND --help` prints at a width of 100 columns. Several PATHs, directories and archives can be
given wherever PATH... stands. What `--json` prints is in [json.md](json.md), what `--csv` prints in
[columns.md](columns.md), exit status and environment variables in [environment.md](environment.md).
"""


def commands(
    command: click.Command = cli, words: tuple[str, ...] = ("traceanalyzer",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Walk a command and all below it: the words that call it, and the command."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from commands(found, (*words, name))


def page() -> str:
    """Return the page's text."""
    found = list(commands())
    lines = [f"{'  ' * (len(words) - 2)}- [{' '.join(words[1:])}](#{_anchor(words)})" for words, _ in found[1:]]
    parts = [note("the commands"), HEAD.strip(), "\n".join(lines)]
    for words, _ in found:
        parts += [f"## {' '.join(words)}", f"```text\n{help_of(words)}\n```"]
    return join(*parts)


def help_of(words: tuple[str, ...]) -> str:
    """Return what --help prints, at a fixed width."""
    result = CliRunner().invoke(cli, [*words[1:], "--help"], prog_name=words[0], terminal_width=WIDTH)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def _anchor(words: tuple[str, ...]) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w-]", "", " ".join(words).replace(" ", "-"))
