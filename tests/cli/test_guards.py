"""What every command line refuses: outputs in the place of inputs, and numbers beyond 64 bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

CASE = CASES / "000_baseline.json"


@pytest.mark.parametrize(
    "words",
    [
        ["report", "trace.svg", "--output", "trace.svg"],
        ["report", "trace.svg", "--output", "other name.json"],
        ["export", "perfetto", "trace.svg", "--output", "trace.svg"],
        ["export", "xlsx", "trace.svg", "--output", "trace.svg"],
        ["hotspots", "trace.svg", "--plot", "trace.svg"],
        ["doctor", "trace.svg", "--repair", "trace.svg"],
        ["tune", "import", "trace.svg", "--output", "trace.svg"],
    ],
)
def test_an_output_never_replaces_an_input(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(CASE, tmp_path / "trace.svg")
    (tmp_path / "other name.json").symlink_to("trace.svg")
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 2
    assert "which is read" in refused.output
    assert (tmp_path / "trace.svg").read_bytes() == CASE.read_bytes()


def test_an_earlier_output_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("an earlier page")
    done = CliRunner().invoke(cli, ["report", str(CASE), "--output", str(page), "--no-cache"])
    assert done.exit_code == 0
    assert page.read_text().startswith("<!")


@pytest.mark.parametrize("option", ["--limit", "--step", "--rank"])
def test_a_number_of_more_than_64_bits_is_a_usage_error(option: str) -> None:
    refused = CliRunner().invoke(cli, ["hotspots", str(CASE), option, "9" * 30])
    assert refused.exit_code == 2
    assert "is too large" in refused.output


@pytest.mark.parametrize("words", [["report"], ["export", "perfetto"], ["export", "csv"], ["ingest"]])
def test_no_file_is_named_like_stdout(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, [*words, str(CASE), "--output", "-"]).exit_code == 2
    assert not list(tmp_path.iterdir())
