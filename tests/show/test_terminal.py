"""The terminal: no colours where they are not wanted, 80 columns, completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from traceanalyzer.cli.main import cli

Run = Callable[..., Any]
COMMAND_LINES = (
    ("ingest", "201_vllm_native.json.gz"),
    ("hotspots", "201_vllm_native.json.gz", "--gpu", "H100 SXM5"),
    ("blocks", "210_dense_first3_moe.json.gz"),
    ("idle", "201_vllm_native.json.gz"),
    ("roofline", "403_roofline_shapes.json", "--gpu", "H100 SXM5"),
    ("diff", "600_ab_before.json.gz", "600_ab_after.json.gz"),
    ("ranks", "303_allreduce_wait"),
)


def output(cases: Path, arguments: tuple[str, ...], **environment: str) -> str:
    given = [str(cases / one) if (cases / one).exists() else one for one in arguments]
    result = CliRunner().invoke(cli, given, env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=lambda arguments: arguments[0])
def test_tables_fit_eighty_columns_without_escape_codes(cases: Path, arguments: tuple[str, ...]) -> None:
    text = output(cases, arguments, COLUMNS="80")
    assert "\x1b" not in text
    # Commands to paste are never broken.
    assert max(len(line) for line in text.splitlines() if not line.startswith("  traceanalyzer ")) <= 80


@pytest.mark.parametrize("arguments", COMMAND_LINES[:2], ids=lambda arguments: arguments[0])
def test_no_color_is_heeded_on_a_terminal(cases: Path, arguments: tuple[str, ...]) -> None:
    text = output(cases, arguments, FORCE_COLOR="1", NO_COLOR="1", COLUMNS="80")
    assert re.findall(r"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38;)[0-9;]*m", text) == []


def test_commands_and_options_complete() -> None:
    def complete(words: str, count: int) -> str:
        environment = {"_TRACEANALYZER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        return CliRunner().invoke(cli, [], env=environment, prog_name="traceanalyzer").output

    assert complete("traceanalyzer hot", 1).split() == ["plain,hotspots"]
    assert {line.split(",")[1] for line in complete("traceanalyzer ", 1).split()} == set(cli.declared())
    assert "--triton-cache" in complete("traceanalyzer hotspots --tri", 2)


def test_quiet_is_an_option_of_every_command() -> None:
    def leaves(group: click.Group) -> Iterator[click.Command]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from leaves(command) if isinstance(command, click.Group) else [command]

    found = list(leaves(cli))
    assert {"perfetto", "csv", "screen", "hotspots"} <= {command.name for command in found}
    for command in found:
        assert any("--quiet" in parameter.opts for parameter in command.params), command.name


@pytest.mark.parametrize(
    ("case", "option"),
    [
        ("000_baseline.json", " --phase decode"),
        ("200_profilerstep_only.json.gz", " --phase decode"),
        ("../reports/conv_net_no_transformer.json.gz", ""),
    ],
)
def test_the_next_commands_look_at_steps_that_are_there(
    cases: Path, monkeypatch: pytest.MonkeyPatch, case: str, option: str
) -> None:
    monkeypatch.chdir(cases)
    result = CliRunner().invoke(cli, ["ingest", "--no-cache", case])
    line = next(line for line in result.stdout.splitlines() if "traceanalyzer hotspots" in line)
    assert line.endswith(case + option)
