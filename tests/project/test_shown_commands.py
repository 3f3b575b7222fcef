"""What the pages tell a reader to type works, and prints what they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from bench.publish import sections as bench_sections
from tests.support.doc_commands import (
    PAGES,
    Command,
    blocks,
    commands,
    is_python,
    is_shell,
    matches,
    parse_only,
    resolve,
    typed_lines,
    unknown_options,
)
from tests.support.doc_sandbox import NOT_HERE, prepare, run, why_not_here
from tests.support.places import ROOT
from traceanalyzer.cli.main import cli

COMMANDS = [command for page in PAGES for command in commands(page)]
SYNOPSES = [command for command in COMMANDS if command.is_synopsis]
PARSED = [command for command in COMMANDS if not command.is_synopsis and why_not_here(command)]
RUN = [command for command in COMMANDS if not command.is_synopsis and not why_not_here(command)]

OTHER_PROGRAMS = {
    *("cd", "cp", "curl", "dcgmi", "export", "git", "ls", "make", "mv", "nvidia-smi", "amd-smi", "pip", "python"),
    *("python3", "rsync", "scp", "source", "sglang", "ssh", "vllm", "eval", "docker"),
}
"""What else pages tell to type; it is not run."""

NEEDS_A_GPU = '"cuda"'
"""In Python code: it wants a GPU, so that only its imports are run."""


TRITON = "3.9."
"""Release whose registers and spills the pages show; others compile to others."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(prepare(tmp_path_factory.mktemp("sandbox")))
        yield Path.cwd()


@pytest.fixture(scope="module")
def seen() -> set[tuple[str, ...]]:
    """Return the arguments that ran already; what several pages say alike need not run again."""
    return set()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_and_the_python_of_a_page_run(page, sandbox, seen) -> None:
    of_page = [command for command in RUN if command.page == page]
    scope: dict[str, object] = {"__name__": page}
    for block in blocks(page):
        if is_python(block):
            code = block.text
            if NEEDS_A_GPU in code:
                code = "\n".join(re.findall(r"^(?:from|import) .*", code, re.MULTILINE))
            exec(compile(code, f"{page}:{block.line}", "exec"), scope)
        for line, _, _ in typed_lines(block) if is_shell(block) else ():
            for command in of_page:
                if command.line == line and (command.output or command.redirect or command.argv not in seen):
                    _check(command, sandbox)
                    seen.add(command.argv)


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in PARSED if "-m slow" in str(why_not_here(each))], ids=str)
def test_a_command_that_takes_minutes_runs(command, sandbox) -> None:
    status, stdout, stderr = run(command, sandbox)
    assert status == 0, f"{command}\n{stderr}"
    if command.output is not None and version("triton").startswith(TRITON):
        assert matches(command.output, stdout), f"{command} prints\n\n{stdout}"


@pytest.mark.parametrize("command", PARSED, ids=lambda command: f"{why_not_here(command)}: {command}")
def test_a_command_that_cannot_run_here_is_parsed(command, sandbox) -> None:
    parse_only(command.argv)


@pytest.mark.parametrize("command", SYNOPSES, ids=str)
def test_a_synopsis_names_a_command_and_its_options(command) -> None:
    assert unknown_options(command.argv) == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_prose_exist(page) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
        words = tuple(code.split())
        if words[0] == "traceanalyzer" and len(words) > 1:
            words = words[1:]
        elif words[0] not in cli.list_commands(click.Context(cli)) or not any(word[0] == "-" for word in words):
            continue
        assert unknown_options(words) == [], code


def test_every_command_in_a_block_is_found() -> None:
    """A second, cruder search of the raw text finds nothing that the parser of blocks missed."""
    crude = re.compile(r"^(?:    |\t|\$ |    \$ )(?:\w+=\S+ +)*traceanalyzer [a-z]")
    found = {(command.page, command.line) for command in COMMANDS}
    shown = {
        (command.page, command.line + offset)
        for command in COMMANDS
        for offset in range(1, 60)
        if command.output is not None and offset <= len(command.output) + 8
    }
    for page in PAGES:
        for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").split("\n"), 1):
            if crude.match(line):
                assert (page, number) in found | shown, f"{page}:{number}: {line}"


def test_most_commands_run_and_no_reason_is_left_over() -> None:
    reasons = {why_not_here(command) for command in PARSED}
    listing = "\n".join(f"{why_not_here(command) or 'synopsis'}: {command}" for command in (*PARSED, *SYNOPSES))
    assert reasons == set(NOT_HERE), listing
    assert len(RUN) + len(PARSED) + len(SYNOPSES) == len(COMMANDS)
    assert len(RUN) > 3 * len(PARSED), listing


@pytest.mark.parametrize("page", PAGES)
def test_nothing_else_is_typed_but_known_programs(page) -> None:
    for block in blocks(page):
        if block.language not in ("console", "sh", "bash", "shell"):
            continue
        for line, text, _ in typed_lines(block):
            words = [word for word in text.split() if not re.match(r"^\w+=", word)]
            if words and not text.startswith("#"):
                assert words[0] in OTHER_PROGRAMS | {"traceanalyzer"}, f"{page}:{line}: {text}"


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_shown_is_one_that_a_command_of_the_page_or_the_benchmarks_draw(page) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    drawn = {
        argument.rpartition("/")[2]
        for command in COMMANDS
        if command.page == page and "--plot" in command.argv
        for argument in [command.argv[command.argv.index("--plot") + 1]]
    }
    if "<!-- bench:" in text:
        drawn |= {section.IMAGE for section in bench_sections().values() if hasattr(section, "IMAGE")}
    for image in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        name = image.rpartition("/")[2]
        assert ((ROOT / page).parent / image).is_file(), image
        assert name in drawn, name


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a", "b"), "a  \nb\n", True),
        (("a", "b"), "a\nc\n", False),
        (("a", "...", "d"), "a\nb\nc\nd\n", True),
        (("a", "...", "d"), "a\nd\n", True),
        (("a", "...", "d"), "a\nb\n", False),
        (("a", "..."), "a\nb\n", True),
        (("b", "..."), "a\nb\n", False),
    ],
)
def test_elided_output_is_compared(shown, printed, same) -> None:
    assert matches(shown, printed) == same


@pytest.mark.parametrize("argv", ["tune paln", "hotspot", "--verson"])
def test_a_misspelt_command_is_noticed(argv) -> None:
    with pytest.raises(click.UsageError):
        parse_only(tuple(argv.split()))


def test_a_misspelt_option_is_noticed() -> None:
    assert unknown_options(("tune", "policy", "sweep.log", "--max-regrets", "1")) == ["--max-regrets"]
    assert resolve(("tune", "plan"))[1] == []


def _check(command: Command, sandbox: Path) -> None:
    status, stdout, stderr = run(command, sandbox)
    assert status == 0, f"{command}\n{stderr}"
    if command.output is not None:
        assert matches(command.output, stdout), f"{command} prints\n\n{stdout}"
