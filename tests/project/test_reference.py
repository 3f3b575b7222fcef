"""The reference is complete and says what the code says."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_type_hints

import click
import polars as pl
import pytest

import traceanalyzer as ta
from docs.generate.columns import EXPORTED, FRAMES, Declared, columns, exported, parts_with
from docs.generate.commands import commands
from docs.generate.documents import SCHEMAS, schema_files
from docs.generate.pages import FOLDER, PAGES
from tests.support.places import CASES, ROOT
from traceanalyzer.commands.diff.compute import Diff, diff
from traceanalyzer.commands.export import tables as table_files
from traceanalyzer.commands.idle.compute import Idle, idle
from traceanalyzer.commands.ingest.compute import Timeline
from traceanalyzer.commands.ranks.compute import RankComparison, compare
from traceanalyzer.declare import frame_schema
from traceanalyzer.notebook import NotebookView
from traceanalyzer.roofline import Request, Roofline, roofline


def test_the_schemas_are_what_would_be_made_now() -> None:
    made = schema_files()
    assert {path: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.json")} == made, "run `make reference`"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_would_be_made_now(name: str) -> None:
    if name == "commands.md" and f"click=={version('click')}" not in (ROOT / "constraints.txt").read_text().split():
        pytest.skip("constraints.txt has another version of click, which words its part of --help otherwise")
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    anchors = {
        "#" + re.sub(r"[^\w-]", "", head.lower().replace(" ", "-")) for head in re.findall(r"^#+ (.*)$", text, re.M)
    }
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        if target.startswith("#"):
            assert target in anchors, target
        else:
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_every_command_and_option_is_told_what_it_does() -> None:
    for words, command in commands():
        assert command.help, words
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, (words, parameter.name)


def test_options_of_the_same_name_mean_the_same() -> None:
    """An option has one type and one short form, so that what is learned at one command holds at the others."""
    kinds: dict[str, set[str]] = {}
    for _, command in commands():
        for parameter in command.params:
            if parameter.opts[0].startswith("--") and parameter.opts[0] not in OTHERWISE:
                kinds.setdefault(parameter.opts[0], set()).add(type(parameter.type).__name__)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}
    shorts: dict[str, set[tuple[str, ...]]] = {}
    for _, command in commands():
        for opts in (parameter.opts for parameter in command.params if isinstance(parameter, click.Option)):
            shorts.setdefault(opts[-1], set()).add(tuple(opts))
    assert {name: found for name, found in shorts.items() if len(found) > 1} == {}


OTHERWISE = {
    "--output",  # of ingest: also a URL
    "--m",  # one number to screen, several to measure
    "--concurrency",  # one to capture, several to measure
    "--device",  # of a trace its number; of a measurement gpu or interpret
    "--before",  # tiles or traces
    "--triton-kernels",  # what is installed, or its version
    "--dtype",  # of a kernel that is measured: only those that it has
    "--model",  # of a server: any name
}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.title)
def test_every_column_has_a_meaning(frame: Declared) -> None:
    assert [name for name, (_, told) in columns(frame.module, frame.name).items() if not told] == []


def test_every_frame_of_a_result_is_declared() -> None:
    titles = {title for frame in FRAMES for title in re.split(r"[,:] ", frame.title)} | set(parts_with("frame_title"))
    views = list(NotebookView.__subclasses__())
    assert Timeline in views
    for view in views:
        frames = {name for name, kind in get_type_hints(view).items() if kind is pl.DataFrame}
        same = {"Timeline": {"steps"}}.get(view.__name__, set())
        assert {f"{view.__name__}.{name}" for name in frames - same} <= titles


def declared(title: str) -> dict[str, str]:
    """Columns and types of a frame, as they are declared."""
    if title in (parts := parts_with("frame_title")):
        return {name: str(dtype) for name, dtype in frame_schema(parts[title]).items()}
    (frame,) = [one for one in FRAMES if title in re.split(r"[,:] ", one.title)]
    return {name: type_ for name, (type_, _) in columns(frame.module, frame.name).items()}


def types_of(frame: pl.DataFrame) -> dict[str, str]:
    return {name: str(dtype) for name, dtype in frame.schema.items()}


def test_frames_have_the_columns_that_are_declared() -> None:
    trace = ta.open_traces(ROOT / "traces" / "gptoss20b_decode_synthetic.json.gz", cache=False).traces[0]
    results: list[Any] = [ta.hotspots(trace), idle(trace), diff(trace, trace), ta.timelines(trace)[0]]
    for result in results:
        for name, value in vars(result).items():
            if isinstance(value, pl.DataFrame) and (type(result).__name__, name) != ("Timeline", "steps"):
                assert types_of(value) == declared(f"{type(result).__name__}.{name}"), name
    assert types_of(ta.steps(trace)) == declared("steps")
    assert types_of(ta.blocks(trace)) == declared("blocks")
    assert types_of(trace.events.limit(1).collect()) == declared("Trace.events")
    kernels = types_of(roofline(trace, Request()).kernels)
    assert {name: kernels[name] for name in declared("Roofline.kernels")} == declared("Roofline.kernels")
    assert {type(result) for result in results} >= {Idle, Diff}
    assert issubclass(Roofline, NotebookView)


def test_frames_of_ranks_have_the_columns_that_are_declared() -> None:
    found = compare(ta.open_traces(CASES / "305_pp2", cache=False))
    frames = {name: value for name, value in vars(found).items() if isinstance(value, pl.DataFrame)}
    assert len(frames) >= 9
    for name, value in frames.items():
        assert types_of(value) == declared(f"{RankComparison.__name__}.{name}"), name
    assert found.pipeline is not None
    assert types_of(found.pipeline.stages) == declared("Pipeline.stages")


def test_every_column_of_an_exported_table_is_told() -> None:
    for _, name, *places in EXPORTED:
        known = {key: value for place in places for key, value in columns(*place).items()}
        for column in getattr(table_files, name):
            assert exported(column, known)[2], column


def test_every_csv_table_of_a_command_is_on_the_page() -> None:
    commands_with_csv = {
        " ".join(words[1:]) for words, command in commands() if any("--csv" in p.opts for p in command.params)
    }
    assert commands_with_csv == {re.split(r" --", title)[0] for title in parts_with("csv_title")}
    assert set(table_files.TABLES) == {"blocks", "kernels", "roles", "gaps", "roofline"} | {
        title.removeprefix("export: ") for title, *_ in EXPORTED
    }


def test_the_page_of_documents_has_every_schema() -> None:
    text = (FOLDER / "json.md").read_text(encoding="utf-8")
    for path in SCHEMAS.glob("*.json"):
        assert f"\n## {path.stem}\n" in text


def test_every_page_is_in_the_index() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.md)\)", text)) == {path.name for path in FOLDER.glob("*.md")} - {"README.md"}
