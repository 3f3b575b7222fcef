from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from traceanalyzer.cli.main import cli
from traceanalyzer.discovery import declared

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^    \$ traceanalyzer (.*)\n((?:(?:    .*)?\n)+?)(?=    \$|[^ \n])", README, re.MULTILINE)


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_the_output_shown_is_what_the_command_prints(command, output, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "92")
    result = CliRunner().invoke(cli, [*shlex.split(command), "--no-cache"])
    shown = [line.removeprefix("    ") for line in output.rstrip("\n").split("\n")]
    assert [line.rstrip() for line in result.stdout.rstrip("\n").split("\n")] == shown


def test_output_is_shown_at_all() -> None:
    assert len(SHOWN) == 2


@pytest.mark.parametrize("page", ["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target


def test_every_command_is_in_the_readme() -> None:
    table = README.partition("## Commands")[2].partition("##")[0]
    assert set(declared("traceanalyzer.cli")) <= set(re.findall(r"`([\w-]+)`", table))


def test_the_python_example_runs(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    code = README.partition("## From Python")[2].partition("\nFrames")[0]
    scope: dict[str, object] = {}
    exec(compile("\n".join(line.removeprefix("    ") for line in code.splitlines()), "README.md", "exec"), scope)
    assert isinstance(scope["trace"], ta.Trace)


def test_every_public_name_is_there_and_documented() -> None:
    for name in set(ta.__all__) - {"__version__"}:
        assert getattr(ta, name).__doc__, name
