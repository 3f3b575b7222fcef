from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import traceanalyzer as ta
from docs.generate.commands import commands as walked
from tests.support.doc_commands import PAGES, commands
from tests.support.places import ROOT
from traceanalyzer.cli.main import cli

OTHERS = ("CONTRIBUTING.md", "SECURITY.md", "traces/README.md", "docs/data/README.md")
"""Pages for contributors, and beside data."""


def test_the_readme_shows_output() -> None:
    assert any(command.output for command in commands("README.md"))


def test_the_tutorial_shows_the_output_of_every_step() -> None:
    shown = {command.argv[0] + (" " + command.argv[1] if command.argv[0] in ("tune", "serving") else "")
             for command in commands("docs/tutorial.md") if command.output}  # fmt: skip
    assert shown >= {
        *("ingest", "blocks", "hotspots", "name", "roofline", "tune plan", "tune screen", "tune import"),
        *("tune policy", "tune export", "serving show", "serving compare"),
    }


@pytest.mark.parametrize("page", [*PAGES, *OTHERS])
def test_links_lead_somewhere(page) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for target in targets:
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        if anchor:
            assert anchor in _anchors(path), target


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {f"docs/{target.partition('#')[0]}" for target in re.findall(r"\]\(([^)]+)\)", index)}
    assert set(PAGES) - {"README.md", "docs/README.md"} <= linked


def test_every_command_is_in_the_index() -> None:
    table = (ROOT / "docs/README.md").read_text(encoding="utf-8").partition("## Commands")[2].partition("##")[0]
    assert set(cli.list_commands(click.Context(cli))) <= set(re.findall(r"`([\w-]+)`", table))


def test_every_plot_is_in_the_list_of_plots() -> None:
    table = (ROOT / "docs/report.md").read_text(encoding="utf-8").partition("## Plots")[2].partition("\n\n")[0]
    drawing = {
        " ".join(words[1:])
        for words, command in walked()
        if any("--plot" in parameter.opts for parameter in command.params)
    }
    assert drawing == set(re.findall(r"`([\w ]+) --plot FILE`", table))


def test_every_public_name_is_there_and_documented() -> None:
    for name in set(ta.__all__) - {"__version__"}:
        assert getattr(ta, name).__doc__, name


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
