"""Find what the documentation tells a reader to type: the commands, what they print, and Python code."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile

import click
from markdown_it import MarkdownIt

from tests.support.places import ROOT
from traceanalyzer.cli.main import cli

WIDTH = 92
"""Columns of the terminal whose output the pages show."""

ELISION = "..."
"""A line of output that stands for any number of lines."""

PAGES = tuple(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/howto").glob("*.md")))
)

_PLACEHOLDER = re.compile(r"\.\.\.|^[A-Z][A-Z_]*$|[\[\]|]")
_EXPLANATION = re.compile(r"(?<=\S) {2,}(?=[^\s#]).*$")


@dataclass(frozen=True)
class Block:
    """A code block: where it begins (line from 1), its language and its lines."""

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A ``traceanalyzer`` command of a page.

    Attributes:
        argv: its arguments, without the program's name and without redirection.
        redirect: the file its output goes to; null without ``> FILE``.
        source: the file it reads from stdin: behind ``<``, or the last word of the command whose output it gets.
        output: the lines shown beneath it; null where none are.
    """

    page: str
    line: int
    argv: tuple[str, ...]
    redirect: str | None
    source: str | None
    output: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: traceanalyzer {shlex.join(self.argv)}"

    @property
    def is_synopsis(self) -> bool:
        """Whether it says how a command is called, with placeholders or without arguments, and is none to type."""
        return any(map(_PLACEHOLDER.search, self.argv)) or resolve(self.argv)[1] == []


def blocks(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page, fenced and indented, in order."""
    for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block"):
            first = token.map[0] + (2 if token.type == "fence" else 1)
            yield Block(page, first, token.info.strip(), token.content)


def commands(page: str) -> list[Command]:
    """Return the page's ``traceanalyzer`` commands in order."""
    return [command for block in blocks(page) for command in _commands_of(block)]


def typed_lines(block: Block) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield (line, text, lines of output) of what a shell block has typed; continued lines are joined.

    In a block with ``$`` only lines that begin with it are typed, and the rest is output.
    """
    lines = block.text.rstrip("\n").split("\n")
    prompted = any(line.startswith("$ ") for line in lines)
    at = 0
    while at < len(lines):
        first, text = at, lines[at]
        at += 1
        if prompted and not text.startswith("$ "):
            continue
        while text.endswith("\\") and at < len(lines):
            text = text[:-1].rstrip() + " " + lines[at].strip()
            at += 1
        output = []
        while prompted and at < len(lines) and not lines[at].startswith("$ "):
            output.append(lines[at].rstrip())
            at += 1
        while output and not output[-1]:
            output.pop()
        yield block.line + first, text.removeprefix("$ ").strip(), tuple(output)


def is_shell(block: Block) -> bool:
    """Whether a block may hold something to type in a shell."""
    return block.language in ("console", "sh", "bash", "shell") or (not block.language and not is_python(block))


def is_python(block: Block) -> bool:
    """Whether a block is Python: it says so, or it is none of a shell and parses with an import."""
    if block.language:
        return block.language == "python"
    if "import " not in block.text:
        return False
    try:
        ast.parse(block.text)
    except SyntaxError:
        return False
    return True


def resolve(argv: tuple[str, ...]) -> tuple[click.Command, list[str]]:
    """Return the command that arguments name, and the arguments left for it.

    Raises:
        click.UsageError: there is no such command.
    """
    command, rest = cli, list(argv)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        _, command, rest = command.resolve_command(click.Context(command), rest)
    return command, rest


def unknown_options(argv: tuple[str, ...]) -> list[str]:
    """Return the options that the command named does not have.

    Raises:
        click.UsageError: there is no such command.
    """
    command, rest = resolve(argv)
    known = {"--help", "-h"} | {
        name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
    }
    given = [word.strip("[]").partition("=")[0] for word in rest if re.match(r"\[?--?[a-z]", word)]
    return [option for option in given if option not in known]


def parse_only(argv: tuple[str, ...]) -> None:
    """Let click read the arguments: options, values, counts, files that have to exist; nothing is done.

    Raises:
        click.UsageError: they are wrong.
    """
    command, rest = resolve(argv)
    command.make_context("traceanalyzer", rest)


def matches(shown: tuple[str, ...], printed: str) -> bool:
    """Whether output is the shown one, blanks at ends of lines and elided lines aside."""
    pattern = "".join(r"(?:.*\n)*?" if line == ELISION else re.escape(line) + r"\n" for line in shown)
    text = "".join(line.rstrip() + "\n" for line in printed.rstrip("\n").split("\n"))
    return re.fullmatch(pattern, text) is not None


def _commands_of(block: Block) -> Iterator[Command]:
    if not is_shell(block):
        return
    for line, text, output in typed_lines(block):
        if not re.search(r"(?:^|[|&] )(?:\w+=\S+ +)*traceanalyzer +[a-z-]", text):
            continue
        bare = text if "$ " in block.text else _EXPLANATION.sub("", text)
        before: list[str] = []
        for words, joint in _pipeline(bare):
            typed = list(dropwhile(re.compile(r"\w+=").match, words))
            if typed and typed[0] == "traceanalyzer":
                argv, redirect, source = _redirected(typed[1:])
                source = before[-1] if joint == "|" else source
                yield Command(block.page, line, argv, redirect, source, output or None)
            before = words


def _pipeline(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield (words, what joins it to the command before) of each command of a line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    joint = ""
    for word in lexer:
        if word in ("|", "&&", ";"):
            yield words, joint
            words, joint = [], word
        else:
            words.append(word)
    yield words, joint


def _redirected(words: list[str]) -> tuple[tuple[str, ...], str | None, str | None]:
    """Return arguments, the file written to, the file read; <(COMMAND FILE) is read as FILE."""
    argv: list[str] = []
    redirect = source = None
    rest = iter(words)
    for word in rest:
        if word == ">":
            redirect = next(rest)
        elif word == "<":
            source = next(rest)
        elif word == "<(":
            argv.append([*iter(rest.__next__, ")")][-1])
        else:
            argv.append(word)
    return tuple(argv), redirect, source
